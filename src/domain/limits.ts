/** Every limit of the service, in one file, with the unit last. Limits from the interface cite it. */
export const limits = {
  /** Spec, Limits: credential session lifetime, 7 days by default. */
  sessionLifetimeMs: 7 * 86_400_000,
  /** The shortest life that a caller may give a credential session. */
  sessionLifetimeMsMin: 60_000,
  /** A caller's own references of a credential session. */
  sessionMetadata: { items: 20, nameCharacters: 40, valueCharacters: 500 },
  /** Lifetime of an embedded session: half an hour by default; its creation may choose between a minute and a day. */
  embeddedLifetimeMs: 30 * 60_000,
  embeddedLifetimeMsMin: 60_000,
  embeddedLifetimeMsMax: 86_400_000,
  embeddedBlueprintsMax: 50,
  localeCharactersMax: 35,
  originCharactersMax: 255,
  /** Submitted forms of an embedded session, whatever their outcome. */
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

  /** docs/api.md#queue-options. The priorities are also in the table's CHECK. */
  runDelayMsMax: 30 * 86_400_000,
  runExpiryMsMax: 60 * 86_400_000,
  runPriorityMax: 10,
  /** docs/api.md#many-triggers-in-one-request: those of a request, and how many of them are executed at once. */
  triggerBatchMax: 1_000,
  triggerBatchChunk: 100,

  /** docs/schedules.md. */
  schedulesMax: 100_000,
  /** A time is missed when so much has passed since. */
  scheduleLateMs: 60_000,
  scheduleMadeUpMax: 100,
  /** Times of a schedule that are computed at once; every minute of a day and more. */
  scheduleTimesMax: 1_500,
  scheduleTriggerBytesMax: 65_536,
  scheduleJitterMsMax: 86_400_000,
  scheduleCronCharactersMax: 200,
  testClockMoveMsMax: 400 * 86_400_000,
  /** How soon a schedule whose run waits for an earlier one is looked at again. */
  scheduleQueuedMs: 5_000,
  scheduleFiresKeptMs: 90 * 86_400_000,
  /** Schedules of one Blueprint's document. */
  documentSchedulesMax: 100,
  /** What operators are shown of a schedule: its next times, and its last runs, which are looked for among so many of its times. */
  scheduleNextTimes: 5,
  scheduleLastRuns: 10,
  scheduleLookedAtFires: 2_000,

  /** docs/decisions/0011: names and other strings. */
  nameCharactersMax: 255,
  returnUrlCharactersMax: 2_048,

  /** docs/webhooks.md#limits. */
  webhookEndpointsMax: 20,
  webhookUrlCharactersMax: 2_000,
  webhookDescriptionCharactersMax: 200,
  webhookTimeoutMs: 15_000,
  webhookAnswerBytesMax: 65_536,
  /** The part of an answer that the delivery log shows. */
  webhookAnswerCharactersKept: 1_024,
  webhookRetryAfterMsMax: 86_400_000,
  /** An endpoint is disabled after so long of nothing but failures. */
  webhookFailingMsMax: 5 * 86_400_000,
  /** Events and the log of their deliveries. */
  webhookKeptMs: 30 * 86_400_000,
  webhookOverlapMsMax: 30 * 86_400_000,

  /** docs/api.md#limits. */
  accountSecretsMax: 200,
  accountSecretCharactersMax: 16_384,
  /** The same as in the table's CHECK. */
  accountSecretOriginsMax: 20,
  jsonBodyBytesMax: 1_048_576,
  triggerJsonBytesMax: 5 * 1_048_576,
  /** Bodies of the operator API before sign-in. */
  openBodyBytesMax: 4_096,
  /** JSON bodies of 64 KiB and more in a process: all received ones; and among them, all that are being read or parsed. */
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
  /** Size of each file in a form; the form's body may be longer by as much. */
  formFileBytesMax: 65_536,
  /** Name and value pairs in a field of headers. */
  formHeadersMax: 10,
  /** Requests of end users: per link, whose frame also polls a sign-in every 1.5 s; and per address. */
  forms: { link: { perSecond: 2, burst: 60 }, address: { perSecond: 50, burst: 500 } },
  /** docs/decisions/0044: for how long a submitted login is tried, and for how long one request waits for the outcome. */
  loginCheckMs: 30_000,
  loginCheckWaitMs: 10_000,
  loginCheckPollMs: 250,
  /** Logins of one session that a target may refuse in a row, even if the strategy's lockout allows fewer. */
  loginTriesMin: 3,
  /** Logins that are tried for one address and strategy. */
  loginTries: { perSecond: 1 / 60, burst: 20 },
  /** The same for one login name and strategy, whatever address and session they come from. */
  loginTriesOfName: { perSecond: 1 / 300, burst: 10 },
  /** Size of a customer's image on the hosted pages. */
  logoBytesMax: 32_768,
  /** Lifetime of a rendered form; after it, the form must be opened again. */
  formLifetimeMs: 12 * 3_600_000,

  /** docs/decisions/0020: lifetime of a `state`. */
  oauthStateMs: 10 * 60_000,
  oauthResponseBytesMax: 262_144,
  /** Time for which an end user waits for another process to exchange a code: two requests to the target, and a polling interval. */
  oauthHandOverMs: 45_000,
  /** RFC 6265, 6.1: cookies of one domain, and in all, that a login or a node may be given. */
  domainCookiesMax: 50,
  cookiesMax: 3_000,
  /** Values of a login (headers, parameters, cookies, extracted values), each of which is searched for in all of a target's answers. */
  sessionSecretsMax: 500,
  /** Cookies set after the login; only the newest are redacted. */
  lateCookiesMax: 200,
  /** Time for which an issuer's metadata is cached. */
  oauthMetadataMs: 10 * 60_000,
  /** An access token that expires within this time is renewed before use. */
  oauthExpiryMarginMs: 60_000,
  /** Assumed lifetime of an access token without a stated expiry, if there is a refresh token. */
  oauthAssumedLifetimeMs: 10 * 60_000,

  /** Timeouts of a whole run, and of its logins. */
  runTimeoutMs: 30 * 60_000,
  loginTimeoutMs: 120_000,
  /** Of all processes of one browser together. */
  browserMemoryBytes: 1_073_741_824,
  /** Attempts of a login's request, and the waits between them, as long as no part of the credential was sent. */
  loginAttemptsMax: 3,
  loginRetry: { backoff: "exponential", initialMs: 500, maxMs: 5_000 },
  /** Steps of a login of several requests. */
  loginStepsMax: 40,
  /** Steps in a list of a browser, the default and the longest time of one, its pause, and the time that a `when` waits. */
  browserStepsMax: 100,
  browserStepMs: 10_000,
  browserStepMsMax: 300_000,
  browserPauseMsMax: 10_000,
  browserWhenMs: 2_000,
  /** Rounds of a `repeat`, and rows of an `each`. */
  browserRoundsMax: 10_000,
  /** Characters that one `extract` may read, and all of a node's. */
  browserCharactersMax: 10_000_000,
  browserUploadBytesMax: 20 * 1_048_576,
  /** Pictures of `screenshot` steps; more are not kept. */
  browserPicturesMax: 20,
  /** A live picture of a run's page: the PNG's size, and how long after its last request a dashboard counts as watching. */
  livePictureBytesMax: 200_000,
  livePictureWatchedMs: 6_000,
  browserNodeCharactersMax: 50_000_000,
  /** Margin of a login's lock over its timeout, so that the login ends before the lock does. */
  loginMarginMs: 10_000,
  /** Timers of Node.js with a longer delay fire at once. */
  timerMsMax: 2 ** 31 - 1,
  /** Time for which the right to log in is reserved for a run that was called and waits for a slot. */
  loginTurnMs: 30_000,
  /** Time for which a run waits in its slot for other logins; then it joins the queue. */
  loginPatienceMs: 100,
  /** Time for which a run waits in its slot for a throttle; and the same for the first slot after it was called. */
  slotPatienceMs: 500,
  calledPatienceMs: 60_000,
  /** Time for which a run waits in its slot for its first browser. */
  browserPatienceMs: 500,
  /** docs/nodes/http.md: `until`. The shortest interval between two polls, and the longest polling time of a read. */
  pollEveryMsMin: 1_000,
  pollForMsMax: 7 * 86_400_000,
  /** Total time for which a polling read waits in its slot; after that its run is handed back, and polls are at least this far apart. */
  pollInPlaceMs: 30_000,
  pollApartMs: 5_000,
  requestTimeoutMs: 30_000,
  /** Proposals that wait for a second admin: their lifetime, their number per account, and the characters of one. */
  proposalMs: 7 * 86_400_000,
  proposalsMax: 100,
  proposalCharactersMax: 1_000_000,
  /** Time within which a rebinding must be executed after its last confirmation. */
  confirmedRebindMs: 24 * 3_600_000,
  /** Time for which `credentials rebind` waits for a login in progress, and delays others. */
  rebindWaitMs: 30_000,
  rebindHoldMs: 60_000,
  /** Rejected logins in a row after which a credential is locked for a while: targets lock accounts after three to ten. */
  lockout: { after: 2, coolDownMs: 3_600_000 },
  redirectsMax: 5,
  /** Retries of a run, over all its nodes, so that a run with many requests does not retry forever while a target is down. */
  retriesMax: 100,
  /** docs/nodes/http.md: `max_bytes` of a response, decompressed. */
  responseBytesMax: 10_000_000,
  /** Upper limits of `max_bytes`: for a response that is read whole, and for one that is streamed. */
  wholeBytesMax: 100_000_000,
  streamedBytesMax: 10_000_000_000,
  /** Length of text that becomes a field of a record, and of the lines before the header of a CSV. */
  textFieldCharactersMax: 10_000_000,
  skippedLinesMax: 10_000,
  pagesMax: 10_000,
  /** Concurrency of a node with `for_each`, and of a loop's iterations. */
  requestsAtOnceMax: 20,
  /** Steps of a loop, and records of a step that are available in `$steps`. */
  loopStepsMax: 20,
  stepVariableRecordsMax: 1_000,
  /** Time for which a sent write may continue after its run was stopped; less than the drain. */
  writeGraceMs: 5_000,

  /** docs/blueprints.md#expressions: 1 s per expression. */
  expressionMs: 1_000,
  expressionThreadMiB: 256,
  /** CPU time of an evaluation, and of a batch, in the common queue; longer ones move to a separate queue. */
  expressionQuickMs: 100,
  expressionTaskMs: 500,
  /** docs/blueprints.md#expressions: `$nodes.<id>` for sets up to this many records. */
  nodesVariableRecordsMax: 10_000,
  recordBatchSizeMax: 500,
  /** Values, and their characters, that each `collect` field of a group may have. */
  collectedValuesMax: 10_000,
  collectedCharactersMax: 4_000_000,
  /** Nesting levels of JSON from a target or a file. */
  dataDepthMax: 500,
  /** Values in JSON that is parsed as a whole; and the memory reserved for such JSON in a process. */
  dataValuesMax: 1_000_000,
  jsonRoomBytesMax: 192 * 1_048_576,
  stepLogLinesMax: 200,
  /** Outputs of steps and results up to this size are stored in their rows; larger ones are objects. */
  rowContentBytesMax: 8_192,

  /** Records that a reviewer may change, the longest line of the file of changes, and its size. */
  reviewChangesMax: 10_000,
  reviewEditBytesMax: 1_048_576,
  reviewEditsBytesMax: 32 * 1_048_576,
  reviewReasonCharactersMax: 2_000,
  /** How long an operator counts as being at a review after the last message of the page, which sends one every 20 s. */
  reviewPresenceMs: 50_000,

  /** Size of the request of a write that may have happened, as shown to an operator. */
  sentCharactersMax: 1_000,
  /** Size of a table of records that an operator downloads. */
  exportColumnsMax: 50_000,

  /** docs/decisions/0029: 30 days after the run ended. */
  retentionMs: 30 * 86_400_000,
  /** docs/decisions/0029: an object that no row refers to after this time is swept. */
  orphanedObjectAgeMs: 86_400_000,
  /** A sweep that was interrupted for this long starts over: rows and objects may have been restored since. */
  sweepForgottenMs: 86_400_000,
  accountConcurrency: 50,
  /** Default quotas of one account. */
  accountQueuedRuns: 1_000_000,
  accountStoredBytes: 1_000_000_000_000,
  /** Maximum age of the counts. Near a quota: the minimum time between two counts, also as a multiple of a count's duration. */
  usageFreshMs: 60_000,
  usageCountEveryMs: 1_000,
  usageCountShare: 20,

  /** docs/api.md#rate-limits: per API key; reads of sessions and run status have ten times as much. */
  rateLimit: { perSecond: 500, burst: 1_000 },
  pollsPerRequest: 10,
  /** Open connections: per client that is neither this machine nor a trusted proxy, and in all. Above `many`, idle ones are closed sooner. */
  connections: { perClientMax: 256, many: 5_000, allMax: 10_000 },
  /** Of one process to the database. */
  databaseConnectionsMax: 20,
  keepAliveMs: 30_000,
  keepAliveOfManyMs: 2_000,
  /** Chained proxies in front of this service. */
  proxyHopsMax: 16,
  /** Failed authentications of one client: an IPv4 address, an IPv6 network of 64 bits. */
  failedAuthentications: { perSecond: 50, burst: 500 },

  /** Streams of run events: open at once, and the time after which a client must reconnect. */
  eventStreamsPerKeyMax: 100,
  eventStreamsPerAccountMax: 500,
  eventStreamsMax: 2_000,
  eventHeartbeatMs: 15_000,
  eventStreamMs: 3_600_000,
  /** The longest time for which a read of a run's status waits for a change. */
  statusWaitSecondsMax: 60,
  /** Event streams of dashboards: per session, and in a process. */
  dashboardStreamsPerSessionMax: 20,
  dashboardStreamsMax: 500,
  /** Maximum age of the state in a stream if every notification is lost. */
  eventPollMs: 1_000,
  /** How far back the stream of an account's events goes for a client that reconnects. */
  eventReplayMs: 3_600_000,

  /** docs/api.md#triggers: names in the header `Ignored-Keys`, and its total bytes. */
  ignoredKeysMax: 20,
  ignoredKeyCharactersMax: 64,
  ignoredKeysBytesMax: 4_096,

  /** Time for which a live key and its account are cached. docs/decisions/0027: a revoked key is refused within a second. */
  callerFreshMs: 100,
  /** docs/decisions/0005. */
  heartbeatMs: 5_000,
  heartbeatStaleMs: 15_000,
  /** After this time without a sent heartbeat, a worker starts no write and no login, because others may take over its runs. */
  selfFenceMs: 10_000,
  lostLeasesMax: 3,

  /** docs/decisions/0023: the chain is extended each second, and a checkpoint is written each minute. */
  auditCloseMs: 1_000,
  auditCheckpointMs: 60_000,
  auditOverdueMs: 60_000,
  /** A month can be exported this long after its end: no transaction that began in it is still open. */
  auditMonthClosesAfterMs: 3_600_000,
  /** docs/decisions/0023: openings of credentials per minute that raise an alarm, and the factor above the average. */
  unusualOpenings: { floor: 60, factor: 10 },
  drainMs: 8_000,
  /** Time without the embedded database after which the process reports itself unhealthy, so that it is restarted. */
  databaseGoneMs: 60_000,
  /** Data that still exists this long after its retention raises an alarm. */
  purgeLateMs: 3_600_000,

  /** docs/decisions/0022: sessions of operators, and the time for which a second factor permits dangerous actions. */
  operatorIdleMs: 30 * 60_000,
  operatorSessionMs: 12 * 3_600_000,
  operatorStepUpMs: 5 * 60_000,
  /** The same for starting or deciding runs that write to other systems, which is everyday work. */
  operatorLateStepUpMs: 30 * 60_000,
  /** The longest life of an operator token. */
  operatorTokenMsMax: 365 * 86_400_000,
  /** A command line that asks to be signed in: how long it may wait, how often it asks, and the longest life of its token. */
  deviceSignInMs: 600_000,
  devicePollMs: 2_000,
  devicePolls: { perSecond: 1, burst: 5 },
  deviceTokenMsMax: 30 * 86_400_000,
  /** Command lines that ask, per client; and codes that an operator looks up. */
  deviceSignIns: { perSecond: 0.1, burst: 20 },
  deviceCodes: { perSecond: 0.5, burst: 30 },
  /** Accounts that an operator or a token may be limited to. */
  operatorAccountsMax: 100,
  /** Requests per session or operator token. */
  operatorCalls: { perSecond: 50, burst: 500 },
  /** Documents from an operator: per request; CPU time and memory for their check; total size as JSON. */
  configBodyBytesMax: 262_144,
  configCheckMs: 3_000,
  configCheckMiB: 256,
  configExpandedCharactersMax: 2_000_000,
  /** Timeout of a request to the operators' provider, for which a person waits. */
  oidcRequestMs: 10_000,
  /** Failed sign-ins per name: free ones, then a wait that doubles from a second to the maximum. A name is never locked permanently. */
  signInFree: 5,
  signInWaitMsMax: 300_000,
  /** Failed sign-ins per client, as above. */
  signIns: { perSecond: 0.5, burst: 30 },
  /** Wrong codes after a correct password, in addition to those limits. */
  signInCodes: { perSecond: 1 / 300, burst: 5 },
  /** Checks of codes per operator that let a sign-in overtake waiting ones. */
  signInTurns: { perSecond: 1 / 60, burst: 5 },
  /** Unknown names for which attempts are counted. */
  unknownNamesMax: 10_000,
  /** Refused sign-ins of unknown names are audited together after this time, because anyone can cause them without limit. */
  refusedSignInsMs: 60_000,
  /** Time for which a browser with an operator's sign-in is remembered. */
  knownBrowserMs: 180 * 86_400_000,
  /** Lifetime of a temporary password of an operator. */
  firstPasswordMs: 7 * 86_400_000,
  recoveryCodes: 10,
  /** The part of a run's name and metadata that a search looks at. */
  searchTextCharactersMax: 4_000,
  /** Items on a page of a list. */
  pageItems: 50,
  pageItemsMax: 200,
} as const;
