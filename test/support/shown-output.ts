/** Compares the output of a command with the one that a page shows. */
import { expect } from 'vitest'

/** Replaces values that differ between runs: times, ports, request ids, digests. */
const stable = (text: string) =>
  text
    .replace(/;t=[1-9]\d*/g, ';t=N')
    .replace(
      /\b(in|after|for|another|within|Retry-After) (?:[1-9]\d*|\d+\.\d+) ?(ms|s|seconds?|minutes?|hours?)\b/g,
      '$1 N $2',
    )
    .replace(/("(?:retryAfter|resetAfter|nextAfter|bannedFor)Ms": ?)[1-9]\d*/g, '$1"N"')
    .replace(/("decidedAt": ?)\d+/g, '$1"N"')
    .replace(/("slot": ?)"[^"]+"/g, '$1"N"')
    .replace(/(Retry-After N s) (?:was exact|\(not waited for\))/g, '$1')
    .replace('. That is slow: choose a region near the server', '')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:N')
    .replace(/fingerprint [0-9a-f]+/g, 'fingerprint N')
    .replace(/(redis-server|valkey-server) .*/g, '$1 N')

const plain = (text: string) => stable(text).replace(/\s+/g, '')

/** Expects text in which `…` stands for anything. White space does not count. */
export function expectText(actual: string, shown: string) {
  if (!patternOf(shown, '^', '$').test(plain(actual))) expect(stable(actual)).toBe(stable(shown))
}

/** True if the text has the one that a page shows, anywhere. */
export const isShown = (actual: string, shown: string) => patternOf(shown).test(plain(actual))

function patternOf(shown: string, before = '', after = '') {
  const parts = plain(shown)
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`${before}${parts.join('.*')}${after}`, 's')
}

/**
 * Expects the status, the fields and, if the page shows it, the body of an answer.
 * @param shown what the page shows of the output of `curl -i`
 */
export function expectAnswer(
  answer: { status: number; header: (name: string) => string | undefined; body: string },
  shown: string,
) {
  const [head, body = ''] = shown.split(/\n\n(.*)/s)
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${answer.status}\\b`))
  for (const [, name, value] of head!.matchAll(/^([\w-]+): (.*)$/gm)) {
    const actual = answer.header(name!) ?? `(no field ${name})`
    // A wait in whole seconds.
    if (name === 'Retry-After') expect(actual).toMatch(/^[1-9]\d*$/)
    else expectText(actual, value!)
  }
  // A page may leave out the body of an answer.
  if (body.trim()) expectText(answer.body, body)
}
