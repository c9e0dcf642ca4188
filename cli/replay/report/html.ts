/** The report as one page: no script, no other file, nothing from the network. */
import { createHash } from 'node:crypto'
import { pageFiles } from '../../dashboard/page-files.ts'
import { sectionsOf, titleOf } from './content.ts'
import type { Block, Plot, Table } from './document.ts'
import { PAGE_STYLE } from './style.ts'
import type { ReplayReport } from './types.ts'

/** The report as one HTML page that needs no other file. */
export async function toHtml(report: ReplayReport): Promise<string> {
  const base = (await pageFiles()).get('/base.css')!.body
  const style = `${base}${PAGE_STYLE}`
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`
  const title = escapeHtml(titleOf(report))
  const sections = sectionsOf(report).map(
    ({ title, blocks }) =>
      `<section>\n<h2>${escapeHtml(title)}</h2>\n${blocks.map(blockHtml).join('\n')}\n</section>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header>
<h1>${title}</h1>
</header>
<main>
${sections.join('\n')}
</main>
</body>
</html>
`
}

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => escapes[character]!)

const tag = (name: string, text: string) => `<${name}>${escapeHtml(text)}</${name}>`

function blockHtml(block: Block): string {
  switch (block.kind) {
    case 'text':
      return tag('p', block.text)
    case 'code':
      return `<pre tabindex="0">${tag('code', block.text)}</pre>`
    case 'list':
      return `<ul>${block.items.map((item) => tag('li', item)).join('')}</ul>`
    case 'item':
      return `<article>${tag('h3', block.title)}${block.lines.map((line) => tag('p', line)).join('')}</article>`
    case 'table':
      return tableHtml(block)
    case 'plot':
      return plotHtml(block)
  }
}

/** A table that scrolls within the page, also by keyboard. */
function tableHtml({ caption, head, rows }: Table): string {
  const heads = head.map((name) => `<th scope="col">${escapeHtml(name)}</th>`)
  const lines = rows.map(([name, ...cells]) => {
    const texts = cells.map((cell) => tag('td', cell))
    return `<tr><th scope="row">${escapeHtml(name!)}</th>${texts.join('')}</tr>`
  })
  return `<div class="scroll" role="region" aria-label="${escapeHtml(caption)}" tabindex="0">
<table>
${tag('caption', caption)}
<thead><tr>${heads.join('')}</tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>
</div>`
}

const HEIGHT = 100

/** Refusals below this part of the highest value have a second picture, in which they fill the height. */
const LOW = 0.2

function plotHtml({ label, ends, series, table }: Plot): string {
  const legend = series.map(
    ({ name, highest }) =>
      `<li class="${classOf(name)}">${escapeHtml(`${name}, highest ${highest}`)}</li>`,
  )
  const [behind, ...refused] = series
  const highest = highestOf(refused)
  const isLow = highest > 0 && highest < LOW * highestOf([behind!])
  const second = () => `<p>Refused requests alone, on a scale of their own:</p>
${pictureHtml(`${label} Refused requests alone.`, refused)}
`
  return `<figure>
<figcaption>${escapeHtml(label)}</figcaption>
<ul class="legend">${legend.join('')}</ul>
${pictureHtml(label, series)}
${isLow ? second() : ''}<p class="ends">${ends.map((end) => tag('span', end)).join(' ')}</p>
<details>
<summary>The numbers as a table</summary>
${tableHtml(table)}
</details>
</figure>`
}

function pictureHtml(label: string, series: Plot['series']): string {
  const highest = highestOf(series) || 1
  const shapes = series.map(
    ({ name, values }) => `<path class="${classOf(name)}" d="${outline(values, highest)}"/>`,
  )
  return `<svg role="img" aria-label="${escapeHtml(label)}" viewBox="0 0 ${series[0]!.values.length} ${HEIGHT}" preserveAspectRatio="none">
${shapes.join('\n')}
</svg>`
}

const highestOf = (series: Plot['series']) =>
  Math.max(0, ...series.map(({ values }) => Math.max(...values)))

const classOf = (name: string) => name.replaceAll(' ', '-')

/** The area below the values, in steps. */
function outline(values: number[], highest: number): string {
  const steps = values.map((value, n) => `V${height(value, highest)}H${n + 1}`)
  return `M0 ${HEIGHT}${steps.join('')}V${HEIGHT}Z`
}

/** The place of a value from the top. A low value above 0 stays visible. */
const height = (value: number, highest: number) => {
  const share = value > 0 ? Math.max(1, (value / highest) * HEIGHT) : 0
  return Math.round((HEIGHT - share) * 10) / 10
}
