/** The table of the algorithms side by side. */
import { byId, element, setText } from '../../cli/dashboard/page/dom.ts'
import { durationText, numberText } from '../../cli/dashboard/page/text.ts'
import type { Played } from './engine/answer.ts'
import { smallTimeline } from './timeline.ts'

export function showCompared({ compared, windowMs, isFinal, from, to }: Played) {
  byId('compare').hidden = compared.length === 0
  setText(byId('most-title'), `most in ${durationText(windowMs)}`)
  const titles = [...document.querySelectorAll('#compare thead th')].map((one) => one.textContent)
  byId('compared').replaceChildren(
    ...compared.map((one) => {
      const row = element('tr')
      const title = element('th', one.title)
      title.scope = 'row'
      row.append(title)
      if (one.problem !== undefined) {
        const cell = element('td', one.problem)
        cell.colSpan = 5
        row.append(cell)
        return row
      }
      const picture = element('td')
      picture.append(smallTimeline(one.times, from, to))
      const { admitted, refused, most, commands } = one.summary
      row.append(
        picture,
        ...[admitted, refused, isFinal ? most : undefined, commands].map((count, n) => {
          const cell = element('td', count === undefined ? '–' : numberText(count))
          cell.dataset.title = titles[n + 2]!
          return cell
        }),
      )
      return row
    }),
  )
}
