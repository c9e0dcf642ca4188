/** The form of the traffic. */
import type { Pattern, TrafficOptions } from './engine/traffic.ts'

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

const fieldOf = (form: HTMLFormElement, name: string) => form.elements.namedItem(name) as Field

export function fillTraffic(form: HTMLFormElement, traffic: TrafficOptions, log: string) {
  const { lengthMs, durationMs, ...same } = traffic
  const values = { ...same, length: lengthMs / 1000, duration: durationMs, log }
  for (const [name, value] of Object.entries(values)) fieldOf(form, name).value = String(value)
}

/** Shows only the fields that the pattern and the door use. The others are not checked. */
export function showFields(form: HTMLFormElement, isCall: boolean) {
  const pattern = fieldOf(form, 'pattern').value
  for (const label of form.querySelectorAll<HTMLElement>('[data-only], [data-not]')) {
    const { only, not } = label.dataset
    const given = [pattern, ...(isCall ? ['call'] : [])]
    const names = (only ?? not)!.split(' ')
    label.hidden = given.some((one) => names.includes(one)) === (only === undefined)
    label.querySelector<Field>('input, textarea')!.disabled = label.hidden
  }
}

/** What is wrong in the form, and what to write instead. Marks the fields. Empty if nothing is. */
export function mistakesIn(form: HTMLFormElement, place: HTMLElement): string {
  const fields = [...form.querySelectorAll<Field>('input, select, textarea')]
  const wrong = fields.filter((field) => !field.validity.valid)
  for (const field of fields) {
    const isWrong = wrong.includes(field)
    field.setAttribute('aria-invalid', String(isWrong))
    if (isWrong) field.setAttribute('aria-describedby', place.id)
    else field.removeAttribute('aria-describedby')
  }
  return wrong.map((field) => `${titleOf(field)}: write ${wantedBy(field)}.`).join(' ')
}

const titleOf = (field: Field) => field.labels![0]!.firstChild!.textContent!.trim()

function wantedBy(field: Field): string {
  const { type, min, max } = field as HTMLInputElement
  if (type === 'number') {
    const most = Number(max).toLocaleString('en')
    return `a whole number from ${min} to ${most}`
  }
  return type === 'url'
    ? 'a whole address, such as https://www.example.com/'
    : 'letters, such as GET'
}

export function trafficIn(form: HTMLFormElement): TrafficOptions {
  const text = (name: string) => fieldOf(form, name).value
  const number = (name: string) => Number(text(name))
  return {
    pattern: text('pattern') as Pattern,
    requests: number('requests'),
    lengthMs: Math.round(number('length') * 1000),
    clients: number('clients'),
    method: text('method').toUpperCase(),
    url: text('url'),
    status: number('status'),
    durationMs: number('duration'),
    body: text('body'),
  }
}
