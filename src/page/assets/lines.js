// Lines on a sheet, as flat lists of x, y, x, y in millimetres.

export function path(xy) {
  let text = `M${xy[0]} ${xy[1]}`;
  for (let at = 2; at < xy.length; at += 2) text += `L${xy[at]} ${xy[at + 1]}`;
  return text;
}

export function pairs(xy) {
  const points = [];
  for (let at = 0; at < xy.length; at += 2) points.push([xy[at], xy[at + 1]]);
  return points;
}

export function length(xy) {
  let sum = 0;
  for (let at = 2; at < xy.length; at += 2) sum += Math.hypot(xy[at] - xy[at - 2], xy[at + 1] - xy[at - 1]);
  return sum;
}

// Returns the first `mm` of a line.
export function beginning(xy, mm) {
  const points = [xy[0], xy[1]];
  for (let at = 2; at < xy.length && mm > 0; at += 2) {
    const [dx, dy] = [xy[at] - xy[at - 2], xy[at + 1] - xy[at - 1]];
    const step = Math.hypot(dx, dy);
    const fraction = step > mm ? mm / step : 1;
    points.push(xy[at - 2] + fraction * dx, xy[at - 1] + fraction * dy);
    mm -= step;
  }
  return points;
}

export const toTenths = (value) => Math.round(value * 10) / 10;
