import { one, testFindings } from '../../support/lint.ts'

const path = '/checkout/*'
testFindings({
  'A rule leaves nothing of a small limit.': [
    'reserve-takes-all policies[0].reserve[0].share',
    one({ limit: 4, reserve: [{ share: 0.8 }] }),
    one({ limit: 4, reserve: [{ share: 0.75 }] }),
  ],
  'A rule leaves less than the cheapest request costs.': [
    'reserve-takes-all policies[0].reserve[1].share',
    one({ cost: 30, reserve: [{ match: { path }, share: 0 }, { share: 0.8 }] }),
    one({ cost: [{ path, cost: 30 }], reserve: [{ match: { path }, share: 0 }, { share: 0.8 }] }),
  ],
  'A rule leaves nothing of the smallest plan.': [
    'reserve-takes-all policies[0].reserve[0].share',
    one({ limits: { free: 1 }, plan: 'country', reserve: [{ share: 0.2 }] }),
    one({ limits: { free: 2 }, plan: 'country', reserve: [{ share: 0.2 }] }),
  ],
  'A rule leaves nothing of a burst.': [
    'reserve-takes-all policies[0].reserve[0].share',
    one({ algorithm: 'gcra', reserve: [{ share: 0.2 }] }),
    one({ algorithm: 'gcra', burst: 2, reserve: [{ share: 0.2 }] }),
  ],
  'A rule comes after a rule for every request.': [
    'reserve-unreachable policies[0].reserve[1]',
    one({ reserve: [{ share: 0.2 }, { match: { path }, share: 0 }] }),
    one({ reserve: [{ match: { path }, share: 0 }, { share: 0.2 }] }),
  ],
  'A rule comes after a rule for every request of the policy.': [
    'reserve-unreachable policies[0].reserve[1]',
    one({ match: { path }, reserve: [{ match: { path }, share: 0.1 }, { share: 0.2 }] }),
    one({ match: { path: '/*' }, reserve: [{ match: { path }, share: 0.1 }, { share: 0.2 }] }),
  ],
})
