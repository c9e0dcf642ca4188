/** Every command of README.md, the tutorial, the guides and the page of the command line has a test that runs it as written, or a reason here why none does. */
import { expect, test } from 'vitest'
import { type Block, blocksOf, pages } from '../support/pages.ts'
import { commandsOf } from '../support/transcripts.ts'

/** What the machine of the tests lacks for a command of a block `elsewhere`, and what is tested instead. */
const NOT_RUN: [command: RegExp, reason: string][] = [
  [
    /\bnpx wrangler (?:login|deploy|secret put|tail)\b/,
    'An account of Cloudflare. The tutorial builds its Worker with --dry-run.',
  ],
  [
    /^curl [^\n]*https:\/\/www\.example\.com|^npx sluice verify https:|npx sluice dashboard --url https:/,
    'A deployed Worker. The suite sends the same to a local one.',
  ],
  [/^curl -X PUT "\$API\//, 'A deployed Worker and the whole digest, which the page shortens.'],
  [/^npx sluice replay \/var\/log\//, 'A log of nginx there. test/cli/replay/logs has such logs.'],
  [
    /^npx sluice replay (?:access\.log\.gz|'logs|app\.log)/,
    'Logs of this name. test/cli/replay replays logs of each format, also by --pattern and --map.',
  ],
  [/^curl -o access\.log /, 'The network. The same log is in test/cli/replay/logs.'],
  [/^npm ci && npm start$/, 'CI installs with npm ci. test/tools/start.test.ts runs npm start.'],
  [
    /^npx sluice verify localhost:3000 --path /,
    'An app with these paths. test/cli/verify-client.test.ts and test/worker/verify send such requests.',
  ],
  [/^git clone <URL /, 'The URL of the repository.'],
  [
    /^cd my-app && npm install \.\.\/sluice\//,
    'The package of a clone. The project package installs it.',
  ],
  [
    /^sudo nginx /,
    'The rights of root. test/worker/forward-auth.test.ts runs nginx with this example.',
  ],
  [/^redis-cli /, 'redis-cli. test/unit/features/live writes the same key.'],
  [/^cd packages\/upstash-bridge$|^openssl rand -hex 32 > tokens$/, 'Docker, for what follows.'],
  [/^docker |^curl [^\n]*127\.0\.0\.1:8079/, 'Docker.'],
  [/^npx sluice bridge --cluster /, 'A Redis Cluster with TLS. The tests of the bridge start one.'],
  [
    /localhost:3000\/(?:api\/auth|cats)/,
    'An app of Better Auth or Nest. test/unit/adapters runs these libraries.',
  ],
]

const guides = pages.filter(({ path }) =>
  /^(README|docs\/tutorial|docs\/guides\/.*|docs\/reference\/(cli|log-formats))\.md$/.test(path),
)

/** The languages of blocks with commands. A block without a language may have some. */
const isShell = ({ language, code }: Block) =>
  ['console', 'sh', 'bash'].includes(language) ||
  (language === '' && /^(?:\$ |npm |npx |curl |git |cd )/m.test(code))

const blocks = guides.flatMap(blocksOf).filter(isShell)

const commandsIn = (block: Block) =>
  block.language === 'console'
    ? commandsOf(block).map(({ command }) => command)
    : block.code.trim().split('\n')

/** Where the commands of a block run, by the name of the block. */
const RUN_BY: Record<string, string> = {
  'console ': 'test/docs/examples.test.ts',
  'console replay': 'test/docs/replay.test.ts',
  'console expectations': 'test/cli/check.test.ts',
  'console session': 'test/package/commands.test.ts',
  'sh session': 'test/package/commands.test.ts',
}

const runAs = (block: Block) => `${block.language} ${block.name}`
const inSessions = new Set(blocks.filter(({ name }) => name === 'session').flatMap(commandsIn))
const elsewhere = blocks
  .filter(({ name }) => name === 'elsewhere')
  .flatMap((block) =>
    commandsIn(block).map((command) => ({ at: `${block.page}:${block.line}`, command })),
  )

test('Each block with commands says which test runs it.', () => {
  const unknown = blocks.filter((block) => block.name !== 'elsewhere' && !RUN_BY[runAs(block)])
  expect(unknown.map((block) => `${block.page}:${block.line} ${runAs(block)}`)).toEqual([])
})

test('A block whose curl commands go to an example has no other commands.', () => {
  const others = blocks
    .filter((block) => runAs(block) === 'console ')
    .flatMap(commandsIn)
    .filter((command) => !command.startsWith('curl '))
  expect(others).toEqual([])
})

test('Each command that no test runs has a reason, or is run on another page.', () => {
  expect(elsewhere.length).toBeGreaterThan(10)
  const without = elsewhere.filter(
    ({ command }) => !inSessions.has(command) && !NOT_RUN.some(([one]) => one.test(command)),
  )
  expect(without).toEqual([])
})

test('Each reason is needed.', () => {
  const needed = elsewhere.filter(({ command }) => !inSessions.has(command))
  const idle = NOT_RUN.filter(([one]) => !needed.some(({ command }) => one.test(command)))
  expect(idle.map(([, reason]) => reason)).toEqual([])
})
