/** Times as people read them. */
import { numberText } from '../../../cli/dashboard/page/text.ts'

const units: [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
]

/** A wait, rounded up, in its two largest units: `250 ms`, `1.1 s`, `59 s`, `1 min 12 s`, `2 h 5 min`. */
export function waitText(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)} ms`
  if (ms < 10_000) return `${numberText(Math.ceil(ms / 100) / 10)} s`
  let rest = Math.ceil(ms / 1000)
  const largest = units.findIndex(([, seconds]) => rest >= seconds)
  const shown = units.slice(largest, largest + 2)
  const least = shown.at(-1)![1]
  rest = Math.ceil(rest / least) * least
  return shown
    .flatMap(([name, seconds]) => {
      const count = Math.floor(rest / seconds)
      rest -= count * seconds
      return count > 0 ? [`${count} ${name}`] : []
    })
    .join(' ')
}

const two = (value: number) => String(value).padStart(2, '0')

/** A moment since the start: `0.4 s`, `31 s`, `1:12`, `2:00:30`, `3 d 4:00:00`. */
export function momentText(ms: number): string {
  if (ms < 10_000) return `${numberText(ms / 1000)} s`
  const all = Math.round(ms / 1000)
  if (all < 60) return `${all} s`
  const minutes = Math.floor(all / 60) % 60
  const hours = Math.floor(all / 3600) % 24
  const days = Math.floor(all / 86_400)
  const clock = all < 3600 ? `${minutes}` : `${hours}:${two(minutes)}`
  return `${days ? `${days} d ` : ''}${clock}:${two(all % 60)}`
}
