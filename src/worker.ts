import config from '../sluice.config.ts'
import { createGateway } from './gateway.ts'

export default createGateway(config)
