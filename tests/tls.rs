//! Another server by `https://`: reached where its certificate is for its name and from a trusted authority, and not otherwise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steadyhand::mcp::tls;
use support::{Bench, SHORT_LINES, scene};
use tokio::net::{TcpListener, TcpStream};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

/// Ends TLS before a server that speaks plain HTTP, as a gateway does.
async fn gateway(to: String) -> SocketAddr {
    let read = |name| std::fs::read(file(name)).unwrap();
    let acceptor = tls::acceptor(&read("server.pem"), &read("server.key")).unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, to) = (acceptor.clone(), to.clone());
            tokio::spawn(async move {
                let mut near = acceptor.accept(stream).await?;
                let mut far = TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    at
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.scene("default", &scene("default", SHORT_LINES));
    bench
}

/// Calls a declared tool of the server at `url`, with `trusted` as the authorities.
fn ask(url: &str, trusted: Option<PathBuf>) -> Value {
    let bench = bench();
    let node = bench.path("node.toml");
    let tool = format!(
        "[[tools]]\nname = \"ask_peer\"\ndescription = \"Ask the peer\"\nserver = {{ url = \"{url}\" }}\ntool = \"sense\"\neffect = \"reads\"\n"
    );
    std::fs::write(&node, tool).unwrap();
    let mut command = bench.command(&["--config", node.to_str().unwrap()]);
    command.args([
        "--state",
        bench.path("state").to_str().unwrap(),
        "call",
        "--json",
        "ask_peer",
    ]);
    command
        .env_remove("SSL_CERT_DIR")
        .env_remove("SSL_CERT_FILE");
    if let Some(trusted) = trusted {
        command.env("SSL_CERT_FILE", trusted);
    }
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{out:?}", out = out.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_https_where_its_certificate_holds() {
    let here = bench();
    let served = here.serve(&[]);
    let plain = served.url.trim_start_matches("http://");
    let port = gateway(plain.trim_end_matches("/mcp").to_owned())
        .await
        .port();
    let trusted = || Some(file("authority.pem"));
    for name in ["127.0.0.1", "localhost"] {
        let url = format!("https://{name}:{port}/mcp");
        let told = tokio::task::spawn_blocking(move || ask(&url, trusted()));
        let told = told.await.unwrap();
        assert_eq!(told["result"]["arm"], "simulated so101", "{told:#}");
    }
    for (name, trusted, words) in [
        ("127.0.0.1", None, "invalid peer certificate"),
        ("127.0.0.2", trusted(), "not valid for name"),
        (
            "127.0.0.1",
            Some(file("server.key")),
            "trusts no certificate authority",
        ),
    ] {
        let url = format!("https://{name}:{port}/mcp");
        let told = tokio::task::spawn_blocking(move || ask(&url, trusted));
        let told = told.await.unwrap();
        let message = told["message"].as_str().unwrap();
        assert!(
            told["success"] == false && message.contains(words),
            "{message}"
        );
    }
}

#[test]
fn a_key_that_is_no_key_is_named() {
    let pem = std::fs::read(file("server.pem")).unwrap();
    for (certificates, key, words) in [
        (&b""[..], &pem[..], "the certificate cannot be used: no PEM"),
        (&pem, &pem, "the key cannot be used"),
    ] {
        let error = tls::acceptor(certificates, key).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}
