import config, { createGateway } from '../sluice.built.ts'

export default createGateway(config)
