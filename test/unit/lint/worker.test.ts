/** Findings about a deployed Worker, and properties of the linter as a whole. */
import { readdir, readFile } from 'node:fs/promises'
import { lint as published } from 'sluice/lint'
import { expect, test } from 'vitest'
import shipped from '../../../sluice.config.ts'
import { findingCodes } from '../../../src/core/config/findings.ts'
import { type ConfigOptions, defineConfig } from '../../../src/core/config/options.ts'
import { turns } from '../../../src/features/turns/index.ts'
import { lint, lintWorker } from '../../../src/lint/lint.ts'
import { base, found, one } from '../../support/lint.ts'

const worker = (config: unknown) => lintWorker(config).map(({ code, path }) => `${code} ${path}`)

test('A configuration without an origin is a finding of lintWorker, but not of lint.', () => {
  expect(worker(one({}))).toEqual(['no-origin origin'])
  expect(found(one({}))).toEqual([])
  expect(worker(one({}, { origin: 'zone' }))).toEqual([])
})

test('A configuration can accept the finding that it has no origin.', () => {
  expect(worker(one({}, { accept: 'no-origin' }))).toEqual([])
  expect(found(one({}, { accept: 'no-origin' }))).toEqual([])
})

test('A wait that is longer than forward-auth waits is a finding of a Worker without an origin.', () => {
  const waiting = (wait: string, accept: string[] = ['no-origin']) =>
    worker(one({ wait, key: 'ip' } as never, { accept, use: [turns()] } as never))
  expect(waiting('2s')).toEqual(['wait-of-calls policies[0].wait'])
  expect(waiting('500ms')).toEqual([])
  expect(waiting('2s', ['no-origin', 'wait-of-calls'])).toEqual([])
  expect(worker(one({ wait: '2s' } as never, { origin: 'zone', use: [turns()] }))).toEqual([])
})

test('A configuration without an origin has no finding if the variable ORIGIN is set.', () => {
  const variables = { ORIGIN: 'https://origin.example.com' }
  expect(lintWorker(one({}), variables)).toEqual([])
})

test('The function lintWorker also reports the findings of lint and the problems of the parser.', () => {
  const config = one({ cost: 0 }, { origin: 'zone' })
  expect(lintWorker(config)).toEqual(lint(config))
  expect(lintWorker({})).toEqual(lint({}))
})

test('The shipped configuration has no findings.', () => {
  expect(lint(shipped)).toEqual([])
})

test('All findings are reported at once, in the order of the configuration.', () => {
  const config: ConfigOptions = {
    deny: {},
    policies: [
      { ...base, window: 60, key: 'global', cost: 101 },
      { ...base, name: 'b', algorithm: 'sliding-log', limit: 5000 },
    ],
    deadline: '1m',
  }
  expect(found(config)).toEqual([
    'global-key policies[0].key',
    'cost-never-fits policies[0].cost',
    'unlikely-duration policies[0].window',
    'large-log policies[1].limit',
    'list-takes-all deny[0]',
    'unlikely-duration deadline',
  ])
})

test('Each code has a test in this folder and a heading in docs/reference/linter.md.', async () => {
  const codes = [...findingCodes, 'duplicate-name', 'invalid'].sort()
  const names = (await readdir(new URL('.', import.meta.url))).filter((name) => /test/.test(name))
  const tests = await Promise.all(
    names.map((name) => readFile(new URL(name, import.meta.url), 'utf8')),
  )
  expect(codes.filter((code) => !tests.join().includes(`'${code} `))).toEqual([])
  const docs = await readFile(new URL('../../../docs/reference/linter.md', import.meta.url), 'utf8')
  expect([...docs.matchAll(/^### (\S+)$/gm)].map(([, code]) => code).sort()).toEqual(codes)
})

test('The package exports lint as sluice/lint, and it takes what defineConfig returns.', () => {
  expect(published).toBe(lint)
  expect(lint(defineConfig({ policies: [{ ...base, key: (c) => String(c) }] }))).toEqual([])
})

test('The bundle of the Worker does not contain the linter.', async () => {
  const reached = new Set<string>()
  const walk = async (url: URL) => {
    if (reached.has(url.href) || !url.href.endsWith('.ts')) return
    reached.add(url.href)
    const text = await readFile(url, 'utf8')
    for (const [, target] of text.matchAll(/ from '(\.[^']+)'/g)) await walk(new URL(target!, url))
  }
  await walk(new URL('../../../src/built/built.ts', import.meta.url))
  expect(reached.size).toBeGreaterThan(20)
  expect([...reached].filter((file) => /\/src\/lint[./]/.test(file))).toEqual([])
})
