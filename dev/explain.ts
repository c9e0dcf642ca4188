/** `npm run explain`: which policies a request meets, its keys and costs, and why the others do not. Asks no Redis. */
import { main } from './explain/cli.ts'

await main(process.argv.slice(2))
