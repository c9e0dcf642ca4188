import config from '../sluice.config.ts'
import { createGateway } from './gateway/gateway.ts'

export default createGateway(config)
