//! Tells data users of version 0.1 that they must update, in the language that they speak.
//!
//! They offer HTTP/2 in the handshake and open one gRPC stream on it. This answers the stream with
//! a status and words, which their program shows, and with nothing else: just as much of HTTP/2
//! (RFC 9113) and HPACK (RFC 7541) as that takes.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What the old peers offer in the TLS handshake.
pub(crate) const ALPN: &[u8] = b"h2";

const CLIENT_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
/// `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 0x5;
/// A frame longer than this is not allowed before both sides agreed on more.
const FRAME_LIMIT: usize = 16 << 10;
/// A client opens its stream after a few frames of settings.
const FRAMES_LIMIT: usize = 16;

/// What the old program shows.
const WORDS: &str = "this provider needs protocol version 2 (heda 0.2), this data user speaks \
                     version 1 (heda 0.1); update heda";
/// gRPC's `FAILED_PRECONDITION`, by which the old program knows that trying again is in vain.
const STATUS: &str = "9";

/// Waits for the peer's stream and refuses it.
pub(crate) async fn refuse<S>(connection: &mut S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    connection.flush().await?;
    let mut preface = [0; CLIENT_PREFACE.len()];
    connection.read_exact(&mut preface).await?;
    if preface != *CLIENT_PREFACE {
        return Err(io::Error::other("no HTTP/2"));
    }
    let stream = opened_stream(connection).await?;
    connection.write_all(&refusal(stream)).await?;
    connection.flush().await
}

/// Skips frames until one opens a stream; its number.
async fn opened_stream<S: AsyncRead + Unpin>(connection: &mut S) -> io::Result<u32> {
    for _ in 0..FRAMES_LIMIT {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await?;
        let [a, b, c, kind, _flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > FRAME_LIMIT {
            return Err(io::Error::other("a frame over the limit"));
        }
        let mut payload = vec![0; length];
        connection.read_exact(&mut payload).await?;
        if kind == HEADERS {
            return Ok(u32::from_be_bytes(stream));
        }
    }
    Err(io::Error::other("no stream was opened"))
}

/// A response that is its own end, and the end of the connection.
fn refusal(stream: u32) -> Vec<u8> {
    // Indexed field 8 is `:status: 200`; what follows are literals that nobody remembers.
    let mut block = vec![0x88];
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("grpc-status", STATUS),
        ("grpc-message", WORDS),
    ] {
        block.push(0);
        for text in [name, value] {
            // Seven bits hold these lengths, and no Huffman code is used.
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let last_stream_and_no_error = [stream.to_be_bytes(), [0; 4]].concat();
    [
        frame(HEADERS, WHOLE, stream, &block),
        frame(GO_AWAY, 0, 0, &last_stream_and_no_error),
    ]
    .concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = (payload.len() as u32).to_be_bytes();
    let head = [&length[..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client of version 0.1 sends first: preface, settings, window, request.
    fn old_greeting() -> Vec<u8> {
        let settings = frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 0]);
        let window = frame(8, 0, 0, &[0, 0xef, 0, 1]);
        let request = frame(HEADERS, 4, 1, &[0x83, 0x86]);
        [&CLIENT_PREFACE[..], &settings, &window, &request].concat()
    }

    fn answer_to(bytes: &[u8]) -> (io::Result<()>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let (mut ours, mut theirs) = tokio::io::duplex(64 << 10);
            theirs.write_all(bytes).await.unwrap();
            theirs.shutdown().await.unwrap();
            let refused = refuse(&mut ours).await;
            drop(ours);
            let mut answer = Vec::new();
            theirs.read_to_end(&mut answer).await.unwrap();
            (refused, answer)
        })
    }

    #[test]
    fn the_words_fit_into_their_field() {
        assert!(WORDS.len() < 127, "{}", WORDS.len());
        assert!(WORDS.chars().all(|c| matches!(c, ' '..='~') && c != '%'));
    }

    #[test]
    fn an_old_peer_is_told_which_version_it_needs() {
        let (refused, answer) = answer_to(&old_greeting());
        refused.unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains("grpc-status\u{1}9"), "{text:?}");
        assert!(text.contains("needs protocol version 2"), "{text:?}");
        // Settings first, then the response on the peer's stream.
        assert_eq!(answer[..9], [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]);
        assert_eq!(answer[12..18], [HEADERS, WHOLE, 0, 0, 0, 1]);
    }

    #[test]
    fn whatever_else_arrives_ends_the_connection() {
        let endless = [&CLIENT_PREFACE[..], &frame(SETTINGS, 0, 0, &[]).repeat(99)].concat();
        let huge = [&CLIENT_PREFACE[..], &[1, 0, 0, SETTINGS, 0, 0, 0, 0, 0]].concat();
        for bytes in [&b""[..], &[0xa5; 4096], &endless, &huge] {
            assert!(answer_to(bytes).0.is_err());
        }
    }
}
