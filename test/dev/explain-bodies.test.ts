import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConfigFolder, configFolder, explain, root } from '../support/dev-command.ts'

let configs: ConfigFolder
let file: string
beforeAll(async () => {
  configs = await configFolder()
  file = await configs.write(
    'bodies',
    `import { bodies } from ${JSON.stringify(`${root}/src/bodies/index.ts`)}
    export default {
      policies: [
        { name: 'tools', limit: 5, window: '1m', match: { body: { method: 'tools/call' } }, key: 'body:params.name', onMissingKey: 'refuse' },
        { name: 'tokens', limit: 500, window: '1m', key: 'global', cost: { body: 'max_tokens', otherwise: 10, max: 100 } },
      ],
      bodies: bodies(),
    }`,
  )
})
afterAll(() => configs.remove())

const output = async (...args: string[]) =>
  (await explain(['--config', file, '--path', '/mcp', ...args])).stdout

test('npm run explain --body shows the keys and costs of a batch.', async () => {
  const call = (name: string) => ({ method: 'tools/call', params: { name } })
  const batch = JSON.stringify([call('a'), call('b'), call('a')])
  expect(
    await output('--body', batch),
  ).toBe(`POST https://www.example.com/mcp from an unknown address

No entry of allow or deny matches the request.

applies  policy  limit, key and cost, or why the policy does not apply
yes      tools   limit  5 per 1m, sliding-window
                 key    body:params.name = a
                 cost   2
yes      tools   limit  5 per 1m, sliding-window
                 key    body:params.name = b
                 cost   1
yes      tokens  limit  500 per 1m, sliding-window
                 key    global
                 cost   30
`)
})

test('npm run explain shows why a condition on the body does not match.', async () => {
  expect(await output('--body', '{"method":"ping","max_tokens":70}')).toContain(
    'no       tools   the body has other values, the policy matches method tools/call',
  )
})

test('npm run explain shows why a body cannot be read.', async () => {
  const shown = await output('--body', '{"method":"ping","method":"tools/call"}')
  expect(shown).toContain('since the key part body:params.name is unreadable')
  expect(shown).toContain('Note: the body cannot be read: a duplicate key.')
  const typed = await output('--body', '{}', '--header', 'content-type: text/plain')
  expect(typed).toContain('Note: the body cannot be read: its type is not JSON.')
})

test('npm run explain refuses a body of GET.', async () => {
  const { stderr } = await explain([
    '--config',
    file,
    '--path',
    '/',
    '--method',
    'GET',
    '--body',
    '{}',
  ])
  expect(stderr).toContain('--body: a GET request has no body')
})
