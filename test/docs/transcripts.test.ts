/**
 * Runs every curl command in a ```console block of the documentation, in order, against the configuration above it on the page, and
 * compares the answer with the one that the page shows.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../../dev/build.ts'
import { type Stack, startStack } from '../../dev/stack.ts'
import type { ConfigOptions } from '../../src/config/options.ts'
import { env } from '../support/configuration-examples/client.ts'
import { parseCurl, sendCurl } from '../support/curl.ts'
import { configOf, isConfig } from '../support/examples.ts'
import { blocksOf, pages } from '../support/pages.ts'
import { transcripts } from '../support/transcripts.ts'
import { nextWindow } from '../support/windows.ts'

/** Replaces values that differ between runs: times, ports, request ids. */
const stable = (text: string) =>
  text
    .replace(/;t=[1-9]\d*/g, ';t=N')
    .replace(/\b(in|after|for|another) [1-9]\d* ?(ms|s)\b/g, '$1 N $2')
    .replace(/("(?:retryAfter|resetAfter|nextAfter|bannedFor)Ms": ?)[1-9]\d*/g, '$1"N"')
    .replace(/("decidedAt": ?)\d+/g, '$1"N"')
    .replace(/("slot": ?)"[^"]+"/g, '$1"N"')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:N')

/** Matches text in which `…` stands for anything; white space does not count. */
function expectText(actual: string, shown: string) {
  const plain = (text: string) => stable(text).replace(/\s+/g, '')
  const escaped = plain(shown)
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  if (!new RegExp(`^${escaped.join('.*')}$`, 's').test(plain(actual))) {
    expect(stable(actual)).toBe(stable(shown))
  }
}

let outdir: string
let configs: Record<string, ConfigOptions>
let shipped: Stack
let stack: Stack
beforeAll(async () => {
  const named = transcripts.map(({ example }) => example)
  configs = Object.fromEntries(
    pages
      .flatMap(blocksOf)
      .filter((block) => isConfig(block) && named.includes(block.name))
      .map((block) => [block.name, configOf(block.code)]),
  )
  outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  await build(outdir, 'test/support/examples-worker.ts')
  const tokens = {
    SLUICE_API_TOKEN: 'dev-api-token-0000',
    SLUICE_OPERATE_TOKEN: 'dev-operate-token-0000',
  }
  const EXAMPLES = JSON.stringify(configs)
  stack = await startStack({ worker: outdir, env: { ...env, ...tokens, EXAMPLES } })
  shipped = await startStack({ env: tokens })
})
afterAll(async () => {
  await Promise.all([stack?.stop(), shipped?.stop()])
  await rm(outdir, { recursive: true })
})

let runs = 0
test.each(transcripts.map((transcript) => [transcript.title, transcript] as const))(
  'The commands at %s print what the page shows.',
  async (title, { example, steps }) => {
    // Each run of a block counts for itself: an address of its own, and keys of its own.
    const run = ++runs
    const own = {
      'CF-Connecting-IP': `198.51.100.${run}`,
      ...(example && { 'x-example': `${example}#${title}#${run}` }),
    }
    // Requests to a window of a second must not spread over two windows.
    if (configs[example]?.policies?.some((policy) => policy.window === '1s')) {
      await nextWindow(1000)
    }
    const { directUrl } = example ? stack.worker : shipped.worker
    for (const { command, output } of steps) {
      const curl = parseCurl(command)
      let printed = ''
      for (const url of curl.urls) {
        const answer = await sendCurl(curl, url, directUrl, own)
        const formatted = curl.format
          .replaceAll('%{http_code}', String(answer.status))
          .replaceAll('\\n', '\n')
        if (!curl.include) {
          printed += (curl.discard ? '' : answer.body) + formatted
          continue
        }
        const [head, body = ''] = output.split(/\n\n(.*)/s)
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
      if (!curl.include) expectText(printed, output)
    }
  },
)
