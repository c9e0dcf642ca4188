/** The examples of the playground. docs/playground.md has a heading for each of them. */
import type { TrafficOptions } from './engine/traffic.ts'

export interface Example {
  /** The name in addresses, and the heading on the page. */
  name: string
  title: string
  text: string
  traffic: TrafficOptions
  /** What to look at. */
  look: string
}

const traffic = (more: Partial<TrafficOptions>): TrafficOptions => ({
  pattern: 'steady',
  requests: 60,
  lengthMs: 120_000,
  clients: 20,
  method: 'GET',
  url: 'https://www.example.com/',
  status: 200,
  durationMs: 100,
  body: '',
  ...more,
})

const configOf = (policies: string) => `import { defineConfig } from 'sluice'

export default defineConfig({
  origin: 'zone',
  policies: [
${policies}
  ],
})
`

export const examples: Example[] = [
  {
    name: 'sliding-window',
    title: 'Sliding window',
    text: configOf(`    { name: 'per-ip', limit: 10, window: '1m' },`),
    traffic: traffic({ pattern: 'edge', requests: 140 }),
    look: 'The whole quota comes just before a window ends. The next window counts it in full at first, and less and less from then on.',
  },
  {
    name: 'fixed-window',
    title: 'Fixed window',
    text: configOf(`    {
      name: 'per-ip',
      algorithm: 'fixed-window',
      align: 'clock',
      limit: 10,
      window: '1m',
    },`),
    traffic: traffic({ pattern: 'edge', requests: 60 }),
    look: 'Ten requests pass just before a window ends, and ten more just after: 20 within ten seconds.',
  },
  {
    name: 'sliding-log',
    title: 'Sliding log',
    text: configOf(`    { name: 'per-ip', algorithm: 'sliding-log', limit: 10, window: '1m' },`),
    traffic: traffic({ pattern: 'edge', requests: 60 }),
    look: 'The same traffic: never more than 10 within any minute. Each request costs more commands.',
  },
  {
    name: 'token-bucket',
    title: 'Token bucket',
    text: configOf(`    {
      name: 'per-ip',
      algorithm: 'token-bucket',
      limit: 60,
      window: '1m',
      burst: 10,
    },`),
    traffic: traffic({ requests: 240, lengthMs: 60_000 }),
    look: 'The full bucket and the tokens that come back meanwhile: up to burst + limit within a minute.',
  },
  {
    name: 'gcra',
    title: 'GCRA',
    text: configOf(`    { name: 'per-ip', algorithm: 'gcra', limit: 60, window: '1m' },`),
    traffic: traffic({ pattern: 'burst', requests: 30, lengthMs: 60_000 }),
    look: 'Of several requests at the same time only one passes, although the quota of the minute is far from used up.',
  },
  {
    name: 'concurrency',
    title: 'Concurrency',
    text: configOf(`    { name: 'reports', algorithm: 'concurrency', limit: 2, window: '1m' },`),
    traffic: traffic({ requests: 40, lengthMs: 60_000, durationMs: 8000 }),
    look: 'The origin takes 8 s for a response, so two requests pass and the next ones are refused until a slot is free.',
  },
  {
    name: 'several-limits',
    title: 'Several limits',
    text: configOf(`    { name: 'per-ip', limit: 60, window: '1m' },
    {
      name: 'login',
      algorithm: 'fixed-window',
      limit: 5,
      window: '1m',
      match: { path: '/login', method: 'POST' },
      onStoreError: 'deny',
    },`),
    traffic: traffic({
      pattern: 'flood',
      requests: 200,
      method: 'POST',
      url: 'https://www.example.com/login',
    }),
    look: 'One client floods the login. The stricter limit refuses it, and a refused request takes nothing from the other limit.',
  },
  {
    name: 'bans',
    title: 'Bans',
    text: configOf(`    {
      name: 'per-ip',
      algorithm: 'fixed-window',
      limit: 10,
      window: '10s',
      penalty: { after: 20, within: '1m', ban: '30s' },
    },`),
    traffic: traffic({ pattern: 'flood', requests: 220 }),
    look: 'After 20 refusals within a minute the client is banned, and each further ban is twice as long.',
  },
  {
    name: 'llm-tokens',
    title: 'LLM tokens',
    text: `import { defineConfig } from 'sluice'
import { bodies } from 'sluice/features'

export default defineConfig({
  origin: 'https://llm.example.com',
  policies: [
    {
      name: 'tokens',
      algorithm: 'token-bucket',
      limit: 10_000,
      window: '1h',
      match: { path: '/v1/chat/completions' },
      cost: {
        usage: 'usage.total_tokens',
        otherwise: 500,
        max: 4000,
      },
    },
  ],
  use: [bodies()],
})
`,
    traffic: traffic({
      requests: 40,
      lengthMs: 60_000,
      method: 'POST',
      url: 'https://www.example.com/v1/chat/completions',
      durationMs: 4000,
      body: '{ "usage": { "total_tokens": 900 } }',
    }),
    look: 'A request reserves 500 tokens, and its response says that it has used 900: the other 400 are charged at its end. Change the body of the response.',
  },
  {
    name: 'wait',
    title: 'Wait for a turn',
    text: configOf(`    {
      name: 'burst',
      algorithm: 'token-bucket',
      limit: 10,
      window: '10s',
      burst: 5,
      wait: '4s',
    },`),
    traffic: traffic({ pattern: 'burst', requests: 30, lengthMs: 60_000 }),
    look: 'Of ten requests at once five pass, four wait for a token each, and only the last one is refused: its turn is too late.',
  },
  {
    name: 'plans',
    title: 'Plans',
    text: `import { defineConfig } from 'sluice'

export default defineConfig({
  origin: 'zone',
  tables: { customers: { '203.0.113.1': 'pro' } },
  policies: [
    {
      name: 'per-customer',
      limit: 5,
      limits: { pro: 50 },
      plan: { key: 'ip', table: 'customers' },
      window: '1m',
    },
  ],
})
`,
    traffic: traffic({ pattern: 'clients', requests: 80, lengthMs: 60_000, clients: 4 }),
    look: 'A table gives one customer the plan pro, with ten times the limit. Choose another client to see its quota.',
  },
  {
    name: 'limit-call',
    title: 'A call with a name and a key',
    text: `import { limits } from 'sluice/limits'

const quota = limits({
  invites: { limit: 5, window: '1h' },
})

await quota.limit('invites', user.id)
`,
    traffic: traffic({ pattern: 'clients', requests: 40, lengthMs: 600_000, clients: 6 }),
    look: 'A job, a tool call or a server action has no request. Here each user sends five invitations an hour, and the call says how many are left.',
  },
]
