/** Draws with SVG. Texts are set as text. */
const SVG = 'http://www.w3.org/2000/svg'

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number>,
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  made.append(...children)
  return made
}

export const rounded = (value: number): number => Math.round(value * 10) / 10

/** Ticks at these places, as one path. */
export const ticks = (places: number[], y: number, height: number): string =>
  places.map((x) => `M${rounded(x)} ${y}v${height}`).join('')
