//! Reads a call's response to its end even if its reader goes: the protocol library forgets a call whose response is dropped
//! before the call has begun (modelcontextprotocol/rust-sdk#967), and the call may be a stop for another node.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio_util::sync::DropGuard;

/// A response's body, with what is kept until the call has been answered.
pub(super) struct CallResponse<K: Send + Unpin + 'static> {
    body: Body,
    /// Tells an unanswered call that its reader has gone: what it moves comes to rest. An answered call ignores that.
    _hung_up: DropGuard,
    /// Given up once the body has ended.
    keep: Option<K>,
}

impl<K: Send + Unpin + 'static> CallResponse<K> {
    pub(super) fn wrap(body: Body, hung_up: DropGuard, keep: K) -> Body {
        Body::new(Self {
            body,
            _hung_up: hung_up,
            keep: Some(keep),
        })
    }
}

impl<K: Send + Unpin + 'static> HttpBody for CallResponse<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.keep = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<K: Send + Unpin + 'static> Drop for CallResponse<K> {
    fn drop(&mut self) {
        let Some(keep) = self.keep.take().filter(|_| !self.body.is_end_stream()) else {
            return;
        };
        // Without a runtime the process ends.
        if let Ok(runtime) = Handle::try_current() {
            let mut body = std::mem::take(&mut self.body);
            let rest = async move {
                while let Some(Ok(_)) = body.frame().await {}
                drop(keep);
            };
            runtime.spawn(rest);
        }
    }
}
