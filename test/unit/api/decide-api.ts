/** The gateway that the tests of `POST /decide` share. */
import { useApi } from '../../support/api-stack.ts'

export const policy = { limit: 3, window: '1h', algorithm: 'fixed-window' } as const

/** The decision API with policies of every kind. */
export const useDecideApi = () =>
  useApi({
    deny: { name: 'abuse', ip: '192.0.2.66' },
    tables: { plans: { acme: 'pro' } },
    policies: [
      { ...policy, name: 'per-ip', match: { host: 'www.example.com', path: '/a/*' } },
      { ...policy, name: 'by-two', key: ['ip', 'path'], match: { host: 'none.example' } },
      { ...policy, name: 'by-user', key: 'jwt:sub', match: { host: 'none.example' } },
      { ...policy, name: 'by-host', key: 'host', match: { path: '/by-host' } },
      { ...policy, name: 'by-path', key: 'path', match: { path: '/by-path/*' } },
      { ...policy, name: 'by-colo', key: 'colo', match: { path: '/by-colo' } },
      { ...policy, name: 'by-name', key: 'path:name', match: { path: '/named/:name' } },
      { ...policy, name: 'by-api-key', key: 'api-key', match: { path: '/by-api-key' } },
      {
        ...policy,
        name: 'planned',
        limits: { pro: 5 },
        plan: { key: 'header:x-customer', table: 'plans' },
        key: 'header:x-customer',
        match: { path: '/planned' },
      },
      { ...policy, name: 'ghost', limit: 1, mode: 'shadow', match: { path: '/ghost' } },
      {
        ...policy,
        name: 'priced',
        cost: { header: 'x-price', otherwise: 1 },
        match: { path: '/priced' },
      },
      {
        ...policy,
        name: 'slow',
        algorithm: 'concurrency',
        limit: 2,
        window: '1m',
        match: { path: '/slow' },
      },
      {
        ...policy,
        name: 'shut',
        match: { path: '/shut' },
        key: 'header:x-key',
        onMissingKey: 'refuse',
      },
      ...['x', 'y', 'z'].map((name) => ({
        ...policy,
        name,
        key: `header:${name}` as const,
        match: { path: '/wide' },
      })),
    ],
    jwt: { secret: 'JWT_SECRET' },
  })

let clients = 0
/** An address that has sent no request yet. */
export const newIp = () => `198.51.${Math.floor(++clients / 250)}.${clients % 250}`
export const request = (ip: string, path = '/a/b', more = {}) => ({
  request: { url: `https://www.example.com${path}`, ip, ...more },
})
