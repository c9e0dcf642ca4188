import { Redis } from '@upstash/redis/cloudflare'
import config from '../sluice.config.ts'
import { createGateway } from './hosts/worker/gateway.ts'
import { exactOptions, upstash } from './stores/upstash.ts'

const store = upstash((env) => Redis.fromEnv(env, exactOptions))

export default createGateway({ store, ...config })
