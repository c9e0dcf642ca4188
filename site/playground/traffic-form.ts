/** The form of the traffic. */
import type { Pattern, TrafficOptions } from './engine/traffic.ts'

const fieldOf = (form: HTMLFormElement, name: string) =>
  form.elements.namedItem(name) as HTMLInputElement

/** Shows the traffic, and only the fields that its pattern uses. */
export function fillTraffic(form: HTMLFormElement, traffic: TrafficOptions, log: string) {
  const values: Record<string, string | number> = {
    pattern: traffic.pattern,
    requests: traffic.requests,
    length: traffic.lengthMs / 1000,
    clients: traffic.clients,
    method: traffic.method,
    url: traffic.url,
    status: traffic.status,
    duration: traffic.durationMs,
    log,
  }
  for (const [name, value] of Object.entries(values)) {
    const field = fieldOf(form, name)
    if (field !== document.activeElement) field.value = String(value)
  }
  const { pattern } = traffic
  for (const label of form.querySelectorAll<HTMLElement>('[data-only], [data-not]')) {
    const { only, not } = label.dataset
    label.hidden = only !== undefined ? !only.split(' ').includes(pattern) : not === pattern
  }
}

export function trafficIn(form: HTMLFormElement): TrafficOptions {
  const number = (name: string) => Number(fieldOf(form, name).value)
  return {
    pattern: fieldOf(form, 'pattern').value as Pattern,
    requests: number('requests'),
    lengthMs: Math.round(number('length') * 1000),
    clients: number('clients'),
    method: fieldOf(form, 'method').value.toUpperCase(),
    url: fieldOf(form, 'url').value,
    status: number('status'),
    durationMs: number('duration'),
  }
}
