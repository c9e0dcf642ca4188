/** The parts that all pictures share: a card in light or dark colours, with a description in words. */
export const WIDTH = 960

const STYLE = `
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .muted { fill: #59636e } .end { text-anchor: end }
.card { fill: #fff; stroke: #d1d9e0 }`.trim()
const DARK = `
text { fill: #f0f6fc } .muted { fill: #9da7b1 } .card { fill: #0d1117; stroke: #3d444d }`.trim()

export interface Card {
  title: string
  /** The text alternative of the picture. */
  description: string
  height: number
  /** Rules of CSS, and those for dark colours. */
  style: string
  dark: string
  body: string[]
}

export const card = ({ title, description, height, style, dark, body }: Card) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="t d">
<title id="t">${asText(title)}</title>
<desc id="d">${asText(description)}</desc>
<style>
${STYLE}
${style}
@media (prefers-color-scheme: dark) {
${DARK}
${dark}
}
</style>
<rect class="card" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${body.join('\n')}
</svg>
`

export const round = (value: number): number => Math.round(value * 10) / 10

export const asText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
