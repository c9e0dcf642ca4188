/** `node tools/demo-origin.ts --port 9090`: runs the demo origin alone. */
import { parseArgs } from 'node:util'
import { startOrigin } from '../cli/dev/origin.ts'

const { values } = parseArgs({ options: { port: { type: 'string', default: '9090' } } })
const { url } = await startOrigin({ port: Number(values.port) })
console.log(`The demo origin listens on ${url}`)
