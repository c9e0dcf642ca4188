/** Names of methods and plans. */
import {
  denying,
  matching,
  one,
  planned,
  priced,
  testFindings,
  testMessages,
} from '../../support/lint.ts'

testFindings({
  'A table contains a plan that no policy has.': [
    'unknown-plan tables.customers.acme',
    planned({ acme: 'prO', globex: 'prO', initech: 'free' }),
    planned({ acme: 'pro', initech: 'free' }),
  ],
  'A table contains a plan that no policy has, and another table is empty.': [
    'unknown-plan tables.customers.acme',
    { ...planned({}), tables: { customers: { acme: 'prO' }, others: {} } },
    planned({}),
  ],
  'A method has swapped letters.': [
    'unknown-method policies[0].match.method[1]',
    matching({ method: ['GET', 'PSOT'] }),
    matching({ method: ['get', 'PROPFIND', 'PATCH'] }),
  ],
  'A condition in not has an unknown method.': [
    'unknown-method policies[0].match.not.method',
    matching({ not: { method: 'OPTION' } }),
    matching({ not: { method: 'OPTIONS' } }),
  ],
  'A reserve names a method that does not exist.': [
    'unknown-method policies[0].reserve[0].match.method',
    one({ reserve: [{ match: { method: 'GTE' }, share: 0.5 }] }),
    one({ reserve: [{ match: { method: 'GET' }, share: 0.5 }] }),
  ],
  'A cost rule has an unknown method.': [
    'unknown-method policies[0].cost[0].method',
    priced([{ method: 'DELTE', cost: 2 }]),
    priced([{ method: 'DELETE', cost: 2 }]),
  ],
  'A cost rule in an object with otherwise has an unknown method.': [
    'unknown-method policies[0].cost.rules[0].not[1].method[0]',
    priced({ rules: [{ not: [{ path: '/a' }, { method: ['DELTE'] }], cost: 2 }], otherwise: 3 }),
    priced({ rules: [{ not: [{ path: '/a' }, { method: ['PUT'] }], cost: 2 }], otherwise: 3 }),
  ],
  'An entry of a list has an unknown method.': [
    'unknown-method deny[1].method',
    denying({ path: '/a' }, { method: 'TRACK', path: '/b' }),
    denying({ path: '/a' }, { method: 'TRACE', path: '/b' }),
  ],
})

testMessages([
  [
    matching({ method: 'PSOT' }),
    '"a" uses the method PSOT, which is not a registered HTTP method.',
  ],
  [
    planned({ acme: 'prO', globex: 'prO' }),
    'The table customers contains the plan "prO" (2 entries), and no policy that uses the table has this plan in limits.',
  ],
])
