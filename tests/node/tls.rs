//! `https://` both ways: another server is reached where its certificate is for its name and from a trusted authority, and not
//! otherwise; and a node serves with a certificate of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use steadyhand::mcp::tls;
use support::{Bench, PATIENCE, SHORT_LINES, scene, streams_of};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

/// Another program's TLS, by the same library and none of our code.
fn server() -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Ends TLS before a server that speaks plain HTTP, as a gateway does.
async fn gateway(to: String) -> SocketAddr {
    let acceptor = server();
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
fn call_peer(url: &str, trusted: Option<PathBuf>) -> Value {
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
        let reply = tokio::task::spawn_blocking(move || call_peer(&url, trusted()));
        let reply = reply.await.unwrap();
        assert_eq!(reply["result"]["arm"], "simulated so101", "{reply:#}");
    }
    for (name, trusted, expected) in [
        ("127.0.0.1", None, "invalid peer certificate"),
        ("127.0.0.2", trusted(), "not valid for name"),
        (
            "127.0.0.1",
            Some(file("server.key")),
            "certificate authority",
        ),
    ] {
        let url = format!("https://{name}:{port}/mcp");
        let reply = tokio::task::spawn_blocking(move || call_peer(&url, trusted));
        let reply = reply.await.unwrap();
        let message = reply["message"].as_str().unwrap();
        assert!(
            reply["success"] == false && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn a_key_that_is_no_key_is_named() {
    let pem = std::fs::read(file("server.pem")).unwrap();
    for (certificates, key, expected) in [(&b""[..], &pem[..], "no PEM"), (&pem, &pem, "the key")] {
        let error = tls::acceptor(certificates, key).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A node file with the certificate and key of this folder, of which the key has this mode.
fn secured(bench: &Bench, key_mode: u32) -> String {
    let (certificate, key) = (bench.path("node.pem"), bench.path("node.key"));
    std::fs::copy(file("server.pem"), &certificate).unwrap();
    std::fs::copy(file("server.key"), &key).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(key_mode)).unwrap();
    format!("tls_cert = {certificate:?}\ntls_key = {key:?}\n")
}

/// Calls `sense` of a node as a client that trusts `trusted`. Returns whether it got an answer, and the output.
fn sense(url: &str, trusted: Option<PathBuf>) -> (bool, String) {
    let bench = bench();
    let mut command = bench.command(&["call", "--json", "--node", url, "sense"]);
    command
        .env_remove("SSL_CERT_DIR")
        .env_remove("SSL_CERT_FILE");
    if let Some(trusted) = trusted {
        command.env("SSL_CERT_FILE", trusted);
    }
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn a_node_serves_https_by_itself_and_nothing_in_plain_text() {
    let bench = bench();
    let served = bench.serve_with_file(&secured(&bench, 0o640));
    assert!(
        served.url.starts_with("https://127.0.0.1:"),
        "{}",
        served.url
    );
    for host in ["127.0.0.1", "localhost"] {
        let url = served.url.replace("127.0.0.1", host);
        let (is_good, printed) = sense(&url, Some(file("authority.pem")));
        assert!(
            is_good && printed.contains("simulated so101"),
            "{url}: {printed}"
        );
    }
    let (is_good, printed) = sense(&served.url, None);
    assert!(!is_good && printed.contains("certificate"), "{printed}");
    let (is_good, _) = sense(&served.url.replace("https", "http"), None);
    assert!(!is_good);
}

/// Somebody else's TLS library with somebody else's HTTP: Python's, which checks the certificate and its name.
#[test]
fn a_client_of_another_make_believes_the_certificate() {
    let bench = bench();
    let served = bench.serve_with_file(&secured(&bench, 0o600));
    let script = "import ssl,sys,urllib.request as u\nprint(u.urlopen(sys.argv[1],context=ssl.create_default_context(cafile=sys.argv[2]),timeout=20).read())";
    let ready = served.url.replace("/mcp", "/healthz");
    let get = |url: &str| {
        let mut python = std::process::Command::new("python3");
        python.args(["-c", script, url]).arg(file("authority.pem"));
        let out = python.output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    assert!(get(&ready).contains("ok"), "{}", get(&ready));
    let other = ready.replace("127.0.0.1", "127.0.0.2");
    assert!(!get(&other).contains("b'ok"), "{}", get(&other));
}

#[test]
fn whoever_is_slow_to_agree_on_a_key_keeps_nobody_waiting_and_is_let_go() {
    let bench = bench();
    let served = bench.serve_with_file(&secured(&bench, 0o600));
    let host = served.host();
    // More than there are places; none says a word.
    let mut silent: Vec<_> = (0..300)
        .map(|_| std::net::TcpStream::connect(&host).unwrap())
        .collect();
    let (is_good, printed) = sense(&served.url, Some(file("authority.pem")));
    assert!(is_good, "{printed}");
    let last = silent.last_mut().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    let ended = last.read(&mut [0]);
    assert!(
        matches!(ended, Ok(0))
            || ended
                .as_ref()
                .is_err_and(|reason| reason.kind() == std::io::ErrorKind::ConnectionReset),
        "it was not let go: {ended:?}"
    );
}

/// Tests what `check` and `serve` say of a node that cannot be secured.
#[test]
fn a_certificate_that_cannot_be_used_is_named_with_its_fix() {
    let bench = bench();
    let pem = |name: &str| file(name).display().to_string();
    let open = secured(&bench, 0o644);
    let bench = bench.with_file(&open);
    let (certificate, key) = (pem("authority.pem"), bench.path("node.key"));
    let mixed = format!("tls_cert = {certificate:?}\ntls_key = {key:?}\n");
    let other = self::bench().with_file(&mixed);
    for (bench, mode, expected) in [
        (&bench, 0o644, &["node.key", "chmod 600"][..]),
        (
            &other,
            0o600,
            &["authority.pem", "node.key", "belong together"],
        ),
    ] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        for (command, out) in [
            (&["check"][..], 0),
            (&["serve", "--http", "127.0.0.1:0"], 1),
        ] {
            let done = bench.run(command);
            assert!(!done.status.success(), "{command:?}");
            let texts: [String; 2] = streams_of(&done).into();
            let text = &texts[out];
            assert!(expected.iter().all(|word| text.contains(word)), "{text}");
        }
    }
    for (text, expected) in [
        ("tls_cert = \"a.pem\"\n", "line 1: `tls_cert`"),
        (
            "tls_cert = \"a.pem\"\ntls_key = \"b.key\"\n",
            "/a.pem: the node",
        ),
    ] {
        other.file(text);
        let (code, stdout, _) = other.streams(&["check"]);
        assert!(code != 0 && stdout.contains(expected), "{stdout}");
    }
}

#[test]
fn encryption_alone_lets_nobody_in_from_elsewhere() {
    let bench = bench();
    let secured = secured(&bench, 0o600);
    let done = bench
        .with_file(&secured)
        .run(&["serve", "--http", "0.0.0.0:0"]);
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(
        !done.status.success() && stderr.contains("steadyhand token add"),
        "{stderr}"
    );
}
