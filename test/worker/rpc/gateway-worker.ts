import { createGateway } from '../../../src/hosts/worker/gateway.ts'

export { RateLimit } from '../../../src/rpc.ts'

export default createGateway({
  deadline: '10s',
  accept: 'no-origin',
  policies: [
    { name: 'login', limit: 3, window: '1h', key: 'header:x-user' },
    { name: 'pairs', limit: 3, window: '1h', key: ['header:x-user', 'header:x-org'] },
  ],
})
