//! A body that keeps a guard for as long as it is being read.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// A body with its guard.
pub(super) struct GuardedBody<K> {
    body: Body,
    _keep: K,
}

impl<K: Send + Unpin + 'static> GuardedBody<K> {
    pub(super) fn wrap(body: Body, keep: K) -> Body {
        Body::new(Self { body, _keep: keep })
    }
}

impl<K: Send + Unpin + 'static> HttpBody for GuardedBody<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
