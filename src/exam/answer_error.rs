//! The reasons that an answer of a model never came, or cannot be used.

/// Reason that an answer of a model never came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The endpoint could not be asked: the message, without the key.
    #[error("{0}")]
    Unreachable(String),
    /// It was not there in time.
    #[error("it did not come within {limit_s} s")]
    Late {
        /// The time limit.
        limit_s: u64,
    },
    /// The endpoint answered with an error: its status and body, and what to do.
    #[error("{0}")]
    Status(String),
    /// The body is not JSON: what it is, and its beginning.
    #[error("the endpoint's answer {what}: {start}")]
    NoJson {
        /// Description of the body.
        what: &'static str,
        /// Beginning of the body.
        start: String,
    },
    /// The body is JSON of something else: its beginning.
    #[error("the endpoint's answer is no chat completion: {0}")]
    NoCompletion(String),
    /// The answer was ended before anything was said.
    #[error(
        "the endpoint ended the answer before anything was said (finish_reason {0:?}); \
         where it is \"length\", give it more tokens (--max-tokens)"
    )]
    Ended(String),
}

/// Reason that what a model says of a case is not used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UnusableReply {
    /// It did not answer.
    #[error(transparent)]
    NoAnswer(#[from] AnswerError),
    /// It failed too often before.
    #[error("it is not asked any more after {0} failures in a row")]
    GivenUp(u32),
    /// It did not answer in the time that was left for it.
    #[error("it did not answer within {within_s:.1} s")]
    Late {
        /// The time.
        within_s: f64,
    },
    /// The case in other words lost a word that it depends on.
    #[error("the model lost {word:?} of {query:?}")]
    Lost {
        /// The word.
        word: String,
        /// The case as it was.
        query: String,
    },
    /// The case in other words does not pass the rules: why not.
    #[error("{}", .0.join("; "))]
    Fails(Vec<String>),
    /// There is no score in the reply, which begins like this.
    #[error("it gave no score from 0 to 1 but {0:?}")]
    NoScore(String),
}
