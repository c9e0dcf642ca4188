import { Hono } from 'hono'
import config, { rateLimiter } from '../sluice.built'

export { SluiceSubject } from 'sluice/durable-objects'

const app = new Hono()
app.use(rateLimiter(config))
app.get('/', (c) => c.text('Welcome. The eleventh request in ten seconds gets a 429.\n'))
app.post('/login', (c) => c.text('Welcome.\n'))

export default app
