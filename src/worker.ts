import config from '../sluice.config.ts'
import { createGateway } from './hosts/worker/gateway.ts'

export default createGateway(config)
