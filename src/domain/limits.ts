/** Every number of the service, in one file, units last. The ones the interface gives cite it. */
export const limits = {
  /** Spec, Limits: credential session lifetime, 7 days by default. */
  sessionLifetimeMs: 7 * 86_400_000,
  /** Of an embedded session: half an hour, unless its creation says otherwise, between a minute and a day. */
  embeddedLifetimeMs: 30 * 60_000,
  embeddedLifetimeMsMin: 60_000,
  embeddedLifetimeMsMax: 86_400_000,
  embeddedBlueprintsMax: 50,
  localeCharactersMax: 35,
  originCharactersMax: 255,
  /** Forms of an embedded session that are sent, whatever becomes of them. */
  embeddedSubmitsMax: 60,
  /** Spec, Limits: idempotent replay window, 24 hours. */
  idempotencyWindowMs: 86_400_000,
  /** Spec, Limits: idempotency key, up to 255 characters (Unicode code points). */
  idempotencyKeyCharactersMax: 255,
  /** docs/decisions/0010: how long a duplicate waits for the first. */
  idempotencyWaitMs: 8_000,
  /** Spec, Limits: direct delivery falls back at an estimated response of 5 MB. */
  directDeliveryBytes: 5_000_000,
  /** Spec, Limits: presigned URLs expire after two hours. */
  presignedUrlLifetimeMs: 2 * 3_600_000,

  /** docs/decisions/0011: names and texts. */
  nameCharactersMax: 255,
  returnUrlCharactersMax: 2_048,

  /** docs/api.md#limits. */
  accountSecretsMax: 200,
  accountSecretCharactersMax: 16_384,
  /** As the table's CHECK. */
  accountSecretOriginsMax: 20,
  jsonBodyBytesMax: 1_048_576,
  triggerJsonBytesMax: 5 * 1_048_576,
  /** Of the operator API before anybody is signed in. */
  openBodyBytesMax: 4_096,
  /** JSON bodies of 64 KiB and more in a process: all that have come; and of these, all that are being read or parsed. */
  largeBodiesBytesMax: 64 * 1_048_576,
  largeBodiesReadBytesMax: 32 * 1_048_576,
  jsonDepthMax: 64,
  jsonValuesMax: 250_000,
  multipartFileBytesMax: 50 * 1_048_576,
  multipartBytesMax: 100 * 1_048_576,
  multipartFilesMax: 20,
  multipartPartsMax: 200,
  multipartBoundaryCharactersMax: 70,
  multipartHeaderBytesMax: 8_192,
  multipartNameBytesMax: 1_024,

  /** docs/decisions/0017: the hosted form. */
  formBodyBytesMax: 65_536,
  formFieldsMax: 50,
  formValueBytesMax: 16_384,
  /** Of each file that a form takes; its body may be longer by as much. */
  formFileBytesMax: 65_536,
  /** Name and value pairs that a field of headers takes. */
  formHeadersMax: 10,
  /** Forms that end users send: of one link, whose frame also asks every 1.5 s how a sign-in goes; and of one address. */
  forms: { link: { perSecond: 2, burst: 60 }, address: { perSecond: 50, burst: 500 } },
  /** Of a customer's picture on the hosted pages. */
  logoBytesMax: 32_768,
  /** How long a rendered form may be filled in before it must be opened anew. */
  formLifetimeMs: 12 * 3_600_000,

  /** docs/decisions/0020: how long a `state` counts. */
  oauthStateMs: 10 * 60_000,
  oauthResponseBytesMax: 262_144,
  /** How long an end user waits for another process to exchange a code: two requests to the target, and a turn. */
  oauthHandOverMs: 45_000,
  /** RFC 6265, 6.1: cookies of one domain, and in all, that a login or a node may be given. */
  domainCookiesMax: 50,
  cookiesMax: 3_000,
  /** Values that a login gives (headers, parameters, cookies, what it extracts), each of which is looked for in all that targets say. */
  sessionSecretsMax: 500,
  /** Cookies that came after the login, the newest of which are looked for. */
  lateCookiesMax: 200,
  /** How long an issuer's metadata is used before it is read again. */
  oauthMetadataMs: 10 * 60_000,
  /** An access token that expires within this time is renewed first. */
  oauthExpiryMarginMs: 60_000,
  /** Of an access token whose target does not say when it expires, when there is a refresh token. */
  oauthAssumedLifetimeMs: 10 * 60_000,

  /** A whole run, and its logins. */
  runTimeoutMs: 30 * 60_000,
  loginTimeoutMs: 120_000,
  /** How often a request of a login is tried, and the waits between, while the target has got nothing of the credential. */
  loginAttemptsMax: 3,
  loginRetry: { backoff: "exponential", initialMs: 500, maxMs: 5_000 },
  /** Steps of a login of several requests. */
  loginStepsMax: 40,
  /** How much longer a login keeps others of its credential out, so that its own end comes first. */
  loginMarginMs: 10_000,
  /** Node's timers take no more: they would fire at once. */
  timerMsMax: 2 ** 31 - 1,
  /** How long the right to log in is kept for a run that was called to it and waits for a place. */
  loginTurnMs: 30_000,
  /** In place, for logins of others to come to an end, one after the other; then a run stands in line. */
  loginPatienceMs: 100,
  /** In place, for a slot of a throttle; and for the first one of a run that was called to it. */
  slotPatienceMs: 500,
  calledPatienceMs: 60_000,
  /** docs/nodes/http.md: `until`. The shortest time between two asks, and the longest that a read may ask for. */
  pollEveryMsMin: 1_000,
  pollForMsMax: 7 * 86_400_000,
  /** How long a read that asks again waits in place, in all; after that its run is handed back, and the asks are at least so far apart. */
  pollInPlaceMs: 30_000,
  pollApartMs: 5_000,
  requestTimeoutMs: 30_000,
  /** What waits for a second admin: how long, how many of an account, and the characters of one. */
  proposalMs: 7 * 86_400_000,
  proposalsMax: 100,
  proposalCharactersMax: 1_000_000,
  /** How long a rebinding may be carried out after its last confirmation. */
  confirmedRebindMs: 24 * 3_600_000,
  /** How long `credentials rebind` waits for a login that is under way, and keeps others waiting. */
  rebindWaitMs: 30_000,
  rebindHoldMs: 60_000,
  /** Rejected logins in a row after which none is tried for a while: targets lock their users out after three to ten. */
  lockout: { after: 2, coolDownMs: 3_600_000 },
  redirectsMax: 5,
  /** Of a run, over all its nodes: a target that is down is not asked forever by a run with many requests. */
  retriesMax: 100,
  /** docs/nodes/http.md: `max_bytes` of a response, decompressed. */
  responseBytesMax: 10_000_000,
  /** Of what a node says by `max_bytes`: of a response that is read whole, and of one that is read as a stream. */
  wholeBytesMax: 100_000_000,
  streamedBytesMax: 10_000_000_000,
  /** Of a text that becomes a field of a record, and of the lines before the header of a CSV. */
  textFieldCharactersMax: 10_000_000,
  skippedLinesMax: 10_000,
  pagesMax: 10_000,
  /** Of a node with `for_each`, and turns of a loop. */
  requestsAtOnceMax: 20,
  /** Of a loop: its steps, and the records of one that `$steps` shows. */
  loopStepsMax: 20,
  stepVariableRecordsMax: 1_000,
  /** How long a write that was sent may go on after its run was stopped; less than the drain. */
  writeGraceMs: 5_000,

  /** docs/blueprints.md#expressions: 1 s an expression. */
  expressionMs: 1_000,
  expressionThreadMiB: 256,
  /** CPU time of one evaluation, and of a batch, that others may have to wait for: what takes longer goes where only its like waits. */
  expressionQuickMs: 100,
  expressionTaskMs: 500,
  /** docs/blueprints.md#expressions: `$nodes.<id>` for sets up to this many records. */
  nodesVariableRecordsMax: 10_000,
  recordBatchSizeMax: 500,
  /** Of a group, for each field that collects. */
  collectedValuesMax: 10_000,
  collectedCharactersMax: 4_000_000,
  /** Levels of JSON that a target or a file may give. */
  dataDepthMax: 500,
  /** Values of JSON that is parsed whole; and memory, by an estimate, that such JSON may take at once in a process. */
  dataValuesMax: 1_000_000,
  jsonRoomBytesMax: 192 * 1_048_576,
  stepLogLinesMax: 200,
  /** Outputs of steps and results up to this are kept in their rows; larger ones are objects. */
  rowContentBytesMax: 8_192,

  /** Records that a reviewer may change, the longest line of their file, and all of it. */
  reviewChangesMax: 10_000,
  reviewEditBytesMax: 1_048_576,
  reviewEditsBytesMax: 32 * 1_048_576,
  reviewReasonCharactersMax: 2_000,

  /** Of the request of a write that may have happened, as an operator is shown it. */
  sentCharactersMax: 1_000,
  /** Of a table of records that an operator downloads. */
  exportColumnsMax: 50_000,

  /** docs/decisions/0029: 30 days after the run ended. */
  retentionMs: 30 * 86_400_000,
  /** docs/decisions/0029: an object that no row names after this is swept. */
  orphanedObjectAgeMs: 86_400_000,
  /** A sweep that has stood still for this long begins anew: rows and objects may have been restored since. */
  sweepForgottenMs: 86_400_000,
  accountConcurrency: 50,
  /** Of one account, unless a setting says otherwise. */
  accountQueuedRuns: 1_000_000,
  accountStoredBytes: 1_000_000_000_000,
  /** How old the counts behind these may be; nearer to the quota: at least so long between two counts, and so many times what one takes. */
  usageFreshMs: 60_000,
  usageCountEveryMs: 1_000,
  usageCountShare: 20,

  /** docs/api.md#rate-limits: per API key; reads of sessions and run status have ten times as much. */
  rateLimit: { perSecond: 500, burst: 1_000 },
  pollsPerRequest: 10,
  /** Open at once: of one client that is neither this machine nor a trusted proxy, and of all. Beyond `many`, idle ones are closed sooner. */
  connections: { perClientMax: 256, many: 5_000, allMax: 10_000 },
  keepAliveMs: 30_000,
  keepAliveOfManyMs: 2_000,
  /** Proxies before this service, one behind the other. */
  proxyHopsMax: 16,
  /** Failed authentications of one client: an IPv4 address, an IPv6 network of 64 bits. */
  failedAuthentications: { perSecond: 50, burst: 500 },

  /** Streams of run events: open at once, and how long one lasts before its client comes back. */
  eventStreamsPerKeyMax: 100,
  eventStreamsPerAccountMax: 500,
  eventStreamsMax: 2_000,
  eventHeartbeatMs: 15_000,
  eventStreamMs: 3_600_000,
  /** Of dashboards: tabs of one browser, and of all in a process. */
  dashboardStreamsPerSessionMax: 20,
  dashboardStreamsMax: 500,
  /** How old what a stream shows may be when every notification is lost. */
  eventPollMs: 1_000,

  /** docs/api.md#triggers: names in the header `Ignored-Keys`, and bytes of it in all. */
  ignoredKeysMax: 20,
  ignoredKeyCharactersMax: 64,
  ignoredKeysBytesMax: 4_096,

  /** For so long a live key and its account are not asked for again. docs/decisions/0027: a revoked key is refused within a second. */
  callerFreshMs: 100,
  /** docs/decisions/0005. */
  heartbeatMs: 5_000,
  heartbeatStaleMs: 15_000,
  /** Since its last heartbeat was sent, a worker begins no write and no login: others may take its runs over. */
  selfFenceMs: 10_000,
  lostLeasesMax: 3,

  /** docs/decisions/0023: the chain is closed each second, and what it has come to is written down each minute. */
  auditCloseMs: 1_000,
  auditCheckpointMs: 60_000,
  auditOverdueMs: 60_000,
  /** docs/decisions/0023: openings of credentials in a minute that are an alarm, and how far above an average one. */
  unusualOpenings: { floor: 60, factor: 10 },
  drainMs: 8_000,
  /** An embedded database that has not run for so long: the process is not healthy, and may as well be ended and started again. */
  databaseGoneMs: 60_000,
  /** Data whose retention has been over for so long and that is still there is an alarm. */
  purgeLateMs: 3_600_000,

  /** docs/decisions/0022: sessions of operators, and how long a second factor counts for what is dangerous. */
  operatorIdleMs: 30 * 60_000,
  operatorSessionMs: 12 * 3_600_000,
  operatorStepUpMs: 5 * 60_000,
  /** And for starting or deciding what writes to other systems: people do that all day. */
  operatorLateStepUpMs: 30 * 60_000,
  /** Requests of one session. */
  operatorCalls: { perSecond: 50, burst: 500 },
  /** Documents that an operator types: of a request; CPU time and memory for checking them; what they may be in all as JSON. */
  configBodyBytesMax: 262_144,
  configCheckMs: 3_000,
  configCheckMiB: 256,
  configExpandedCharactersMax: 2_000_000,
  /** One request to the operators' provider: a person waits for it. */
  oidcRequestMs: 10_000,
  /** Sign-ins by one name: free ones, then a wait that doubles from a second up to the longest. Never a lock forever. */
  signInFree: 5,
  signInWaitMsMax: 300_000,
  /** Sign-ins of one client, as above. */
  signIns: { perSecond: 0.5, burst: 30 },
  /** Wrong codes of somebody who knows the password, beyond those limits. */
  signInCodes: { perSecond: 1 / 300, burst: 5 },
  /** How often a code may be looked at for one operator to let a sign-in overtake others that wait. */
  signInTurns: { perSecond: 1 / 60, burst: 5 },
  /** Names that nobody has and that attempts are counted for. */
  unknownNamesMax: 10_000,
  /** Refused sign-ins that strangers can cause without an end are put on record together after that time. */
  refusedSignInsMs: 60_000,
  /** How long a browser is known in which an operator has signed in. */
  knownBrowserMs: 180 * 86_400_000,
  /** How long a password counts that was made for an operator. */
  firstPasswordMs: 7 * 86_400_000,
  recoveryCodes: 10,
  /** What a page of a list holds. */
  pageItems: 50,
  pageItemsMax: 200,
} as const;
