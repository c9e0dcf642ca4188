import { observe } from 'sluice/features'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../../src/core/base/errors.ts'
import { parseOptions } from '../../../../src/features/observe/options.ts'
import { problems } from '../../../support/parse.ts'

const problemsOf = (options: unknown) => {
  try {
    parseOptions(options)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).problems.map(
      ({ path, expected, got }) => `${path}: ${expected} | ${got}`,
    )
  }
  return []
}
const to = '"log", "trace", "analytics:BINDING" or "otlp:https://collector.example.com/v1/metrics"'
const percentage = 'a whole number of percent from 1 to 100, such as 80'

describe('options of observe', () => {
  test('Without options clients are hashed, and the counts go nowhere.', () => {
    expect(parseOptions({})).toEqual({ subjects: 'hashed', to: [], every: 10_000 })
  })

  test('A full set of options is parsed.', () => {
    const onDecision = () => {}
    const destinations = ['log', 'analytics:SLUICE_DATA', 'otlp:http://127.0.0.1:4318/v1/metrics']
    expect(
      parseOptions({
        subjects: 'plain',
        to: destinations,
        every: '1m',
        webhook: { url: 'https://hooks.example.com/' },
        onDecision,
      }),
    ).toEqual({
      subjects: 'plain',
      to: destinations,
      every: 60_000,
      webhook: { url: 'https://hooks.example.com/', thresholds: [80, 90, 100] },
      onDecision,
    })
    expect(parseOptions({ to: 'log' }).to).toEqual(['log'])
    expect(parseOptions({ to: 'trace' }).to).toEqual(['trace'])
  })

  test.each([
    [null, 'observe: an object | null'],
    [
      { too: 'log' },
      'observe.too: one of the fields subjects, to, every, webhook, onDecision | "log"',
    ],
    [{ subjects: 'full' }, 'observe.subjects: one of hashed, none, plain | "full"'],
    [{ to: 'file' }, `observe.to: ${to} | "file"`],
    [{ to: ['log', 'analytics:'] }, `observe.to[1]: ${to} | "analytics:"`],
    [{ to: 'trace:here' }, `observe.to: ${to} | "trace:here"`],
    [{ to: 'otlp:collector' }, `observe.to: ${to} | "otlp:collector"`],
    [{ to: 'otlp:https://user:secret@x/' }, `observe.to: ${to} | "otlp:https://user:secret@x/"`],
    [{ every: 0 }, 'observe.every: a duration like "10s", or whole milliseconds | 0'],
    [
      { webhook: {} },
      'observe.webhook.url: a URL like "https://hooks.example.com/limits" (https, or http on localhost) | nothing',
    ],
    [
      { webhook: { url: 'https://x', thresholds: [80, 101] } },
      `observe.webhook.thresholds[1]: ${percentage} | 101`,
    ],
    [
      { webhook: { url: 'https://x', thresholds: [0.8] } },
      `observe.webhook.thresholds[0]: ${percentage} | 0.8`,
    ],
    [
      { webhook: { url: 'https://x', thresholds: [] } },
      'observe.webhook.thresholds: at least one percentage | []',
    ],
    [
      { webhook: { url: 'http://hooks.example.com/' } },
      'observe.webhook.url: a URL like "https://hooks.example.com/limits" (https, or http on localhost) | "http://hooks.example.com/"',
    ],
    [
      { webhook: { url: 'https://x' }, subjects: 'none' },
      `observe.webhook: no value (a notice names the client, but subjects is 'none') | {"url":"https://x"}`,
    ],
    [{ onDecision: 'log' }, 'observe.onDecision: a function | "log"'],
  ])('The options %j are refused with one problem.', (options, problem) => {
    expect(problemsOf(options)).toEqual([problem])
  })
})

test('A configuration may use the result of observe().', () => {
  expect(problems({ policies: [], use: [observe()] })).toEqual([])
})
