//! Bounds the pictures of a result, or leaves them out if the node file says so; the result still names their files.

use super::reply::Reply;

/// Most bytes of all pictures of a result together, because clients put them into a model's context.
const BYTES_MAX: usize = 400_000;

/// Removes pictures from a reply that may have none, or whose pictures have too many bytes.
pub(super) fn limit_pictures(mut reply: Reply, are_shown: bool) -> Reply {
    let limit = if are_shown { BYTES_MAX } else { 0 };
    let before = reply.images.len();
    let mut bytes = 0;
    reply.images.retain(|(_, picture)| {
        bytes += picture.len();
        bytes <= limit
    });
    let left_out = before - reply.images.len();
    if left_out > 0 && are_shown {
        reply.set("pictures_left_out", left_out);
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(pictures: &[usize]) -> Reply {
        let mut reply = Reply::done("drawn");
        reply.show(pictures.iter().map(|bytes| vec![0; *bytes]));
        reply
    }

    #[test]
    fn pictures_are_kept_as_long_as_they_fit() {
        let bounded = limit_pictures(reply(&[150_000, 150_000, 150_000]), true);
        assert_eq!(bounded.images.len(), 2);
        assert_eq!(bounded.structured.get("pictures_left_out"), Some(&1.into()));
        let few = limit_pictures(reply(&[150_000, 150_000]), true);
        assert_eq!(few.images.len(), 2);
        assert_eq!(few.structured.get("pictures_left_out"), None);
    }

    #[test]
    fn a_node_file_may_want_none() {
        let stripped = limit_pictures(reply(&[10]), false);
        assert!(stripped.images.is_empty());
        assert_eq!(stripped.structured.get("pictures_left_out"), None);
    }
}
