//! Reasons why a model gave no answer, or one that cannot be used.

/// Reason why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The endpoint could not be asked: the message, without the key.
    #[error("{0}")]
    Unreachable(String),
    /// The answer did not arrive in time.
    #[error("the answer did not arrive within {limit_s} s")]
    Late {
        /// The time limit.
        limit_s: u64,
    },
    /// The endpoint answered with an error: its status and body, and advice.
    #[error("{0}")]
    Status(String),
    /// The body is not JSON.
    #[error("the endpoint's answer {what}: {start}")]
    NoJson {
        /// Description of the body.
        what: &'static str,
        /// Beginning of the body.
        start: String,
    },
    /// The body is other JSON, which begins like this.
    #[error("the endpoint's answer is not a chat completion: {0}")]
    NoCompletion(String),
    /// The answer ended before anything was said.
    #[error(
        "the endpoint ended the answer before any text (`finish_reason` {0:?}). If that is \"length\", allow more tokens with --max-tokens"
    )]
    Ended(String),
}

/// Reason why a model's reply about a case is not used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UnusableReply {
    /// It did not answer.
    #[error(transparent)]
    NoAnswer(#[from] AnswerError),
    /// It failed too often before.
    #[error("it failed {0} times in a row, so no more questions are sent to it")]
    GivenUp(u32),
    /// It did not answer in the time that was left.
    #[error("the model did not answer within {within_s:.1} s")]
    Late {
        /// The time limit.
        within_s: f64,
    },
    /// The paraphrase lost an essential word.
    #[error("the model left {word:?} out of {query:?}")]
    Lost {
        /// The word.
        word: String,
        /// The original question.
        query: String,
    },
    /// The paraphrased case does not pass the rules, for these reasons.
    #[error("{}", .0.join("; "))]
    Fails(Vec<String>),
    /// There is no score in the reply, which begins like this.
    #[error("the model answered {0:?} instead of a score from 0 to 1")]
    NoScore(String),
}
