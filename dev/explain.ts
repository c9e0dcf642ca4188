/** `npm run explain`: shows which policies apply to a request, with its keys and costs, and why the others do not. Needs no Redis. */
import { main } from '../cli/explain/cli.ts'

await main(process.argv.slice(2))
