/** Writes texts into the document. Each text is set as text, never as markup: names and subjects may contain anything. */

export const byId = <E extends HTMLElement = HTMLElement>(id: string): E =>
  document.getElementById(id) as E

export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text
}

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

export function button(text: string, of: string, onClick: () => unknown): HTMLButtonElement {
  const made = element('button', text)
  made.type = 'button'
  made.setAttribute('aria-label', `${text} ${of}`)
  made.addEventListener('click', onClick)
  return made
}

interface RowsOf<T> {
  key(item: T): string
  /** The first text is the heading of the row. */
  cells(item: T): string[]
  /** The length of the bar behind the row, from 0 to 1. */
  share?(item: T): number
  /** The contents of a last cell, made once. */
  actions?(item: T): Node[]
}

/** Shows a list as rows. A row keeps its elements while its key stays, so that an update takes neither focus nor selection away. */
export function showRows<T>(
  body: HTMLElement,
  items: T[],
  { key, cells, share, actions }: RowsOf<T>,
) {
  const titles = [...body.closest('table')!.tHead!.rows[0]!.cells].map((cell) => cell.textContent)
  const before = new Map([...body.children].map((row) => [(row as HTMLElement).dataset.key, row]))
  const rows = items.map((item) => {
    const texts = cells(item)
    const row = before.get(key(item)) ?? newRow(key(item), titles, texts.length, actions?.(item))
    texts.forEach((text, index) => {
      const cell = row.children[index] as HTMLElement
      setText(cell, text)
      cell.classList.toggle('zero', text === '0')
    })
    if (share) (row as HTMLElement).style.setProperty('--share', `${100 * share(item)}%`)
    return row
  })
  const isSame = rows.length === before.size && rows.every((row, n) => row === body.children[n])
  if (isSame) return
  const focused = document.activeElement as HTMLElement | null
  body.replaceChildren(...rows)
  if (body.contains(focused)) focused!.focus({ preventScroll: true }) // a moved element loses the focus
}

function newRow(key: string, titles: string[], count: number, actions?: Node[]): HTMLElement {
  const row = element('tr')
  row.dataset.key = key
  for (let index = 0; index < count; index += 1) {
    const cell = element(index === 0 ? 'th' : 'td')
    cell.dataset.title = titles[index]!
    row.append(cell)
  }
  ;(row.firstChild as HTMLTableCellElement).scope = 'row'
  if (actions) {
    const cell = element('td')
    cell.className = 'actions'
    cell.append(...actions)
    row.append(cell)
  }
  return row
}

/** Shows pairs of a name and a value. */
export function showPairs(list: HTMLElement, pairs: Record<string, string>) {
  for (const [name, value] of Object.entries(pairs)) {
    const known = [...list.children].find((one) => one.firstChild?.textContent === name)
    if (known) setText(known.lastChild!, value)
    else {
      const pair = element('div')
      pair.append(element('dt', name), element('dd', value))
      list.append(pair)
    }
  }
  for (const pair of [...list.children]) {
    if (!(pair.firstChild!.textContent! in pairs)) pair.remove()
  }
}

/** Shows the options of a selection, and keeps the selected one. */
export function showOptions(select: HTMLSelectElement, options: [value: string, text: string][]) {
  const before = [...select.options].map(({ value, text }) => [value, text])
  if (JSON.stringify(before) === JSON.stringify(options)) return
  const { value } = select
  select.replaceChildren(
    ...options.map(([value, text]) => {
      const option = element('option', text)
      option.value = value
      return option
    }),
  )
  if (options.some(([one]) => one === value)) select.value = value
}

/** Lets users of a keyboard scroll tables that are wider than the page. */
export function scrollByKeys() {
  const sized = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const place = target.closest<HTMLElement>('.scroll')!
      const isWide = place.scrollWidth > place.clientWidth
      if (isWide === place.hasAttribute('tabindex')) continue
      if (!isWide) place.removeAttribute('tabindex')
      else {
        place.tabIndex = 0
        place.setAttribute('role', 'region')
        place.setAttribute('aria-label', `${nameOf(place.querySelector('table')!)} (scrolls)`)
      }
    }
  })
  for (const place of document.querySelectorAll('.scroll')) {
    sized.observe(place)
    sized.observe(place.firstElementChild!)
  }
}

const nameOf = (table: HTMLTableElement) =>
  table.caption?.textContent ??
  document.getElementById(table.getAttribute('aria-labelledby') ?? '')?.textContent ??
  'Table'
