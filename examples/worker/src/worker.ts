import { Hono } from 'hono'
import { rateLimiter } from 'sluice'
import config from '../sluice.config'

export { SluiceSubject } from 'sluice/durable-objects'

const app = new Hono()
app.use(rateLimiter(config))
app.get('/', (c) => c.text('Welcome. The eleventh request in ten seconds gets a 429.\n'))
app.post('/login', (c) => c.text('Welcome.\n'))

export default app
