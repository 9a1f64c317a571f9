// The shape of each state, so that colour is not all that tells; each is one path, filled by the even-odd rule.
export const STATE_SHAPES = {
  slash: "M12 2a10 10 0 1 0 0 20a10 10 0 1 0 0-20zM12 5a7 7 0 1 1 0 14a7 7 0 1 1 0-14zM8.5 7L17 15.5L15.5 17L7 8.5z",
  octagon: "M8 2h8l6 6v8l-6 6H8l-6-6V8zM7 10.5v3h10v-3z",
  triangle: "M12 1.5L23 21.5H1zM10.8 8.5v6.5h2.4V8.5zM10.8 16.5v2.4h2.4v-2.4z",
  square: "M4 4h16v16H4z",
  person: "M12 2a5 5 0 1 0 0 10a5 5 0 1 0 0-10zM2 22a10 8.5 0 0 1 20 0z",
  pause: "M5 3h5v18H5zM14 3h5v18h-5z",
  dots: "M4 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6zM12 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6zM20 9a3 3 0 1 0 0 6a3 3 0 1 0 0-6z",
  play: "M5 2l16 10L5 22z",
  ring: "M12 2a10 10 0 1 0 0 20a10 10 0 1 0 0-20zM12 5a7 7 0 1 1 0 14a7 7 0 1 1 0-14z",
  disc: "M12 2a10 10 0 1 0 0 20a10 10 0 1 0 0-20z",
};
