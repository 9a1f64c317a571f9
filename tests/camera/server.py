"""RTSP cameras by GStreamer's own server: H.264, JPEG and VP8 of its colour bars; with a password, it asks for it by Digest."""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

BARS = "videotestsrc is-live=true pattern=smpte ! video/x-raw,width=640,height=480,framerate=15/1 ! videoconvert"
CODECS = {
    "/h264": "x264enc tune=zerolatency key-int-max=30 ! rtph264pay name=pay0 config-interval=1",
    "/jpeg": "video/x-raw,format=I420 ! jpegenc ! rtpjpegpay name=pay0",
    "/vp8": "vp8enc deadline=1 ! rtpvp8pay name=pay0",
}

Gst.init(None)
server = GstRtspServer.RTSPServer.new()
server.set_address("127.0.0.1")
server.set_service("0")
for password in sys.argv[1:]:
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    auth.add_digest("me", password, token)
    server.set_auth(auth)
may = "user, media.factory.access=(boolean)true, media.factory.construct=(boolean)true"
for path, codec in CODECS.items():
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {BARS} ! {codec} )")
    factory.set_shared(True)
    factory.add_role_from_structure(Gst.Structure.new_from_string(may))
    server.get_mount_points().add_factory(path, factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
