/** The options of API keys in a configuration. */
import { expect, test } from 'vitest'
import { ConfigError } from '../../../src/base/errors.ts'
import { parseConfig } from '../../../src/config/parse.ts'

const parse = (options: object) => parseConfig({ policies: [], ...options })
const problems = (options: object) => {
  try {
    parse(options)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n').map((line) => line.trim())
  }
}

test('The option apiKeys has defaults, and reports invalid fields.', () => {
  const from = [
    { source: 'header', name: 'x-api-key' },
    { source: 'bearer', name: '' },
  ]
  expect(parse({}).apiKeys).toEqual({ from })
  expect(parse({ apiKeys: { known: 'API_KEYS' } }).apiKeys).toEqual({ from, known: 'API_KEYS' })
  expect(problems({ apiKeys: { known: 'a-b' } })).toEqual([
    expect.stringContaining('apiKeys.known: expected the name of a variable'),
  ])
  expect(problems({ apiKeys: { from: [] } })).toEqual([
    expect.stringContaining('apiKeys.from: expected at least one value'),
  ])
})
