/** A small line of figures, with the words for those who do not see it. */

import { s } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 26;
const PAD = 2;

/**
 * Return a picture of figures, oldest first; all lines have one scale.
 * @param {{values: (number | null)[], style: string}[]} lines null is a gap
 * @param {string} said what it says
 * @param {{width?: number, height?: number}} [size] pixels
 * @returns {SVGElement}
 */
export function sparkline(lines, said, { width = WIDTH, height = HEIGHT } = {}) {
  const most = Math.max(1e-9, ...lines.flatMap((line) => line.values.map((one) => one ?? 0)));
  const count = Math.max(2, ...lines.map((line) => line.values.length));
  const x = (index, length) => width - PAD - ((length - 1 - index) * (width - 2 * PAD)) / (count - 1);
  const y = (value) => height - PAD - (value / most) * (height - 2 * PAD);
  const paths = lines.map(({ values, style }) => {
    let pen = "M";
    const points = values.map((value, index) => {
      if (value === null) {
        pen = "M";
        return "";
      }
      const point = `${pen}${x(index, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
      return point;
    });
    return s("path", { d: points.join(""), class: `spark ${style}` });
  });
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": said },
    s("path", { d: `M0 ${height - 0.5}H${width}`, class: "spark-ground" }),
    paths,
  );
}
