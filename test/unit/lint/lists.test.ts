/** Entries of `allow` and `deny`. */
import { allowing, denying, jwt, one, testFindings, testMessages } from '../../support/lint.ts'

testFindings({
  'An entry of allow matches every request.': [
    'list-takes-all allow[0]',
    { ...one({}), allow: { path: '/*' } },
    { ...one({}), allow: { path: '/' } },
  ],
  'An entry of deny matches every request.': [
    'list-takes-all deny[0]',
    { ...one({}), deny: {} },
    { ...one({}), deny: { not: { method: ['GET', 'POST'] } } },
  ],
  'An entry of allow matches every address.': [
    'list-takes-all allow[0]',
    { ...one({}), allow: { ip: ['198.51.100.7', '0.0.0.0/0'] } },
    { ...one({}), allow: { ip: '0.0.0.0/0', path: '/health' } },
  ],
  'An entry of allow matches every request and names no policies.': [
    'list-takes-all allow[0]',
    allowing({}),
    allowing({ policies: ['a'] }),
  ],
})

/** spoofable-list */
testFindings({
  'An entry of allow matches clients that send a header with a short value.': [
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-internal': 'true' } }),
    allowing({ header: { 'x-internal': 'true' }, ip: '198.51.100.0/24' }),
  ],
  'An entry of allow matches clients that send a header with any value.': [
    'spoofable-list allow[0].header',
    allowing({ header: { authorization: true }, path: '/api/v1/*' }),
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw' }, path: '/api/v1/*' }),
  ],
  'An entry of allow matches clients that send a header, and not only preflights.': [
    'spoofable-list allow[0].header',
    allowing({ header: { 'access-control-request-method': true }, method: ['OPTIONS', 'POST'] }),
    allowing({ header: { 'access-control-request-method': true }, method: 'OPTIONS' }),
  ],
  'An entry of allow matches a header with two values, one of which is short.': [
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-monitor': ['6bCV2rf4jKtQ9dXw', 'test'] } }),
    allowing({ header: { 'x-monitor': ['6bCV2rf4jKtQ9dXw', 'oDiQ52LmPz8sYhcE'] } }),
  ],
  'An entry of allow matches the start of a secret.': [
    'spoofable-list allow[0].header',
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw*' } }),
    allowing({ header: { 'x-monitor': '6bCV2rf4jKtQ9dXw', 'x-any': true } }),
  ],
  'An entry of allow matches clients that send a header beside what they can leave out.': [
    'spoofable-list allow[0].header',
    { ...allowing({ header: { authorization: true }, jwt: false }), use: [jwt] },
    { ...allowing({ header: { authorization: true }, jwt: true }), use: [jwt] },
  ],
  'An entry of allow matches clients that leave out a header.': [
    'spoofable-list allow[0].not[0].header',
    allowing({ country: 'DE', not: { header: { 'x-plan': 'free' } } }),
    denying({ country: 'DE', not: { header: { 'x-plan': 'free' } } }),
  ],
})

testMessages([
  [
    allowing({ header: { 'X-Internal': 'yes' } }),
    'allow[0] lets any client that sends x-internal skip limits.',
  ],
])
