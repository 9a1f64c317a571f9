"""A camera over the sheet: an HTTP address that gives a photo of its tags and of the ink that the physics has, as a JPEG.

A pinhole without distortion, out of whose sight the arm has moved. It stands where `LINES`, for the node file, says.
"""
import http.server
import io
import threading

import numpy as np
from PIL import Image
from scipy.ndimage import distance_transform_edt, gaussian_filter, map_coordinates

SIZE, FOCAL = (1280, 960), 2600.0
STANDS_MM, LOOKS_AT_MM = np.array([10.0, -352.0, 385.0]), np.array([0.0, -175.0, 5.0])
LINES = '''
[[cameras]]
name = "top"
source = "http://{address}/photo.jpg"
size_px = {size}
focal_px = [{focal}, {focal}]
timeout_ms = 10000
'''
# The first tags of the family 36h11 as published, row by row, a set bit white.
TAGS = (0xD5D628584, 0xD97F18B49, 0xDD280910E, 0xE479E9C98)
CELLS = 8
DESK, PAPER, BLACK = 90.0, 225.0, 25.0
# Of the drawn sheet: pixels for each millimetre, and the desk that is seen around it.
PER_MM, AROUND_MM = 20, 5.0
NOISE = 1.5


def printed(scene):
    """The sheet of a scene with its tags, the lower left corner of desk and sheet first."""
    width, height = scene["sheet"]["size_mm"]
    count = lambda mm: int((mm + 2 * AROUND_MM) * PER_MM)
    grey = np.full((count(height), count(width)), DESK)
    edge = int(AROUND_MM * PER_MM)
    grey[edge:-edge, edge:-edge] = PAPER
    for tag in scene["fiducials"]["tags"]:
        bits = np.array([int(bit) for bit in f"{TAGS[tag['id']]:036b}"]).reshape(6, 6)
        cells = np.pad(bits, 1)[::-1]  # the lowest row first
        across = (np.arange(int(tag["size_mm"] * PER_MM)) + 0.5) / (tag["size_mm"] * PER_MM) * CELLS
        cells = cells[np.ix_(across.astype(int), across.astype(int))]
        left, low = (int((at - tag["size_mm"] / 2 + AROUND_MM) * PER_MM) for at in tag["at_mm"])
        grey[low : low + len(cells), left : left + len(cells)] = np.where(cells, PAPER, BLACK)
    return grey


def inked(grey, points_mm, width_mm):
    """The same sheet with a line of this width along the ink."""
    if not len(points_mm):
        return grey
    clean = np.ones(grey.shape, bool)
    at = ((points_mm + AROUND_MM) * PER_MM).astype(int)
    inside = ((at >= 0) & (at < grey.shape[::-1])).all(axis=1)
    clean[at[inside, 1], at[inside, 0]] = False
    return np.where(distance_transform_edt(clean) <= width_mm / 2 * PER_MM, BLACK, grey)


def seen_places(sheet):
    """For each pixel, where on the drawn sheet it looks."""
    ahead = LOOKS_AT_MM - STANDS_MM
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    u, v = np.meshgrid(*((np.arange(count) + 0.5 - count / 2) / FOCAL for count in SIZE))
    rays = ahead + u[..., None] * right + v[..., None] * down
    normal = np.cross(sheet.x, sheet.y)
    places = STANDS_MM + rays * (((sheet.origin - STANDS_MM) @ normal) / (rays @ normal))[..., None] - sheet.origin
    return (np.array([places @ sheet.y, places @ sheet.x]) + AROUND_MM) * PER_MM - 0.5


class Camera:
    """Serves a photo of the present ink to each who asks."""

    def __init__(self, scene, sheet, ink_mm):
        self.sheet, self.ink_mm, self.grey = sheet, ink_mm, printed(scene)
        self.width_mm, self.chance = scene["pens"][0]["width_mm"], np.random.default_rng(1)
        self.places, self.of_ink, self.seen = seen_places(sheet), -1, None
        self.one = threading.Lock()
        camera = self

        class Door(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = camera.photo()
                self.send_response(200)
                self.send_header("Content-Type", "image/jpeg")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def photo(self):
        """A JPEG of the present ink; only noise is new where no ink is."""
        with self.one:
            ink_mm = self.ink_mm()
            if len(ink_mm) != self.of_ink:
                grey = inked(self.grey, self.sheet.points(ink_mm), self.width_mm)
                soft = gaussian_filter(grey, PER_MM / 12)
                self.seen = map_coordinates(soft, self.places, order=1, cval=DESK)
                self.of_ink = len(ink_mm)
            noisy = self.seen + self.chance.normal(0, NOISE, self.seen.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=95)
        return file.getvalue()

    def lines(self):
        """Its part of the node file."""
        address = "127.0.0.1:%d" % self.server.server_address[1]
        return LINES.format(address=address, size=list(SIZE), focal=FOCAL)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
