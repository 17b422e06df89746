import {
  type keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  useMutation,
  useQueries,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import type { OperatorAnswer, OperatorOperation } from "#contract/operator/operation.ts";
import { ApiFailure } from "./failure.ts";
import { readMe, signOut } from "./operations.ts";
import {
  call,
  keepCsrfToken,
  renewCsrfTokenBy,
  type AnswerOf,
  type Endpoint,
  type InputOf,
} from "./request.ts";
import { Cancelled } from "./step-up.ts";
import { drafts } from "./use-draft.ts";

export type Me = AnswerOf<typeof readMe>;

const ME = ["me"] as const;
const TRIES_MAX = 2;
/** How often pages with live data are refreshed: without notifications (`alone`), and with them (`told`). */
/** For what no notification announces. */
export const OFTEN_MS = 3_000;
const LIVE_MS = { alone: 3_000, told: 30_000 } as const;
let isStreaming = false;

/** Whether notifications of changes arrive; see watch.ts. */
export function setStreaming(is: boolean): void {
  isStreaming = is;
}

/** Any 401 means that the session has ended: the shell then shows the sign-in page. */
function noteFailure(error: unknown): void {
  if (error instanceof ApiFailure && error.status === 401 && queryClient.getQueryData(ME)) setMe(null);
}

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    queries: {
      // A refused request would be refused again; one without an answer is retried.
      retry: (count, error) =>
        count < TRIES_MAX && error instanceof ApiFailure && (error.status === 0 || error.status >= 500),
      staleTime: 1_000,
    },
    // Without a connection it fails immediately, so that nothing is executed later than the operator expects.
    mutations: { networkMode: "always" },
  },
});

export const openQueries = (): QueryClient => queryClient;

/** The end of a session keeps the drafts, so that the same operator can continue with them after signing in again. */
function noteMe(me: Me | null): void {
  keepCsrfToken(me?.csrf_token ?? null);
  if (me) drafts.ownBy(me.id);
}

/** Sets the signed-in operator, and discards all data that the previous one has loaded. */
export function setMe(me: Me | null): void {
  const before = queryClient.getQueryData<Me | null>(ME);
  noteMe(me);
  if (before && before.id !== me?.id)
    queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== ME[0] });
  queryClient.setQueryData(ME, me);
}

renewCsrfTokenBy(async () => {
  const me = await call(readMe, {});
  const before = queryClient.getQueryData<Me | null>(ME);
  // One operator's drafts are never sent as another operator.
  if (before && before.id !== me.id)
    throw new ApiFailure(
      409,
      `You are now signed in as ${me.email}, in another tab. Nothing was changed. Reload the page to continue.`,
    );
  setMe(me);
});

/** Null: not signed in. */
export function useMe(): UseQueryResult<Me | null> {
  return useQuery({
    queryKey: ME,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Me | null> => {
      try {
        const me = await call(readMe, {}, signal);
        noteMe(me);
        return me;
      } catch (error) {
        if (error instanceof ApiFailure && error.status === 401) return null;
        throw error;
      }
    },
  });
}

/** The signed-in operator. Only for components inside the shell, where there always is one. */
export function useSignedIn(): Me & { readonly may: (permission: string) => boolean } {
  const { data } = useMe();
  if (!data) throw new ApiFailure(401, "Sign in again.");
  return { ...data, may: (permission) => data.permissions.includes(permission) };
}

export async function endSession(): Promise<void> {
  await call(signOut, {});
  drafts.clear();
  setMe(null);
}

/** The cache key of an operation: its path, then its parameters. `["/runs"]` matches all lists of runs. */
export const keyOf = <O extends OperatorOperation>(
  from: Endpoint<O>,
  input?: InputOf<O>,
): readonly unknown[] => (input === undefined ? [from.path] : [from.path, input]);

const readingOf = <O extends OperatorOperation>(from: Endpoint<O>, input: InputOf<O>) => ({
  queryKey: keyOf(from, input),
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<OperatorAnswer<O>> =>
    await call(from, input, signal),
});

/** Reads an operation once for each input; undefined: not read yet. */
export const useReads = <O extends OperatorOperation>(
  from: Endpoint<O>,
  inputs: readonly InputOf<O>[],
): readonly (OperatorAnswer<O> | undefined)[] =>
  useQueries({ queries: inputs.map((input) => readingOf(from, input)) }).map(({ data }) => data);

/** Reads an operation; refreshes it while `live`: when a change is announced, or `often` where changes are not announced. */
export function useRead<O extends OperatorOperation>(
  from: Endpoint<O>,
  input: InputOf<O>,
  options: {
    readonly live?: boolean;
    readonly enabled?: boolean;
    /** Refreshes it this often, whether or not notifications arrive. */
    readonly everyMs?: number;
    readonly placeholderData?: typeof keepPreviousData;
  } = {},
): UseQueryResult<OperatorAnswer<O>> {
  return useQuery<OperatorAnswer<O>>({
    ...readingOf(from, input),
    enabled: options.enabled ?? true,
    ...(options.placeholderData && { placeholderData: options.placeholderData }),
    refetchInterval: () => {
      if (options.everyMs !== undefined) return options.everyMs;
      if (options.live !== true) return false;
      return isStreaming ? LIVE_MS.told : LIVE_MS.alone;
    },
  });
}

/** Executes an operation, then reloads the data that it changes. If the operator cancels the code dialog, no error is shown. */
export function useOperation<O extends OperatorOperation>(
  to: Endpoint<O>,
  options: {
    readonly changes: readonly (readonly unknown[])[];
    readonly onDone?: (answer: OperatorAnswer<O>) => void;
  },
) {
  const client = useQueryClient();
  const mutation = useMutation<OperatorAnswer<O>, Error, InputOf<O>>({
    mutationFn: async (input) => await call(to, input),
    // The request may contain a password or a secret, so it is discarded with the form.
    gcTime: 0,
    onSuccess: (answer) => {
      options.onDone?.(answer);
    },
    onSettled: async () => {
      await Promise.all(
        options.changes.map((queryKey) => client.invalidateQueries({ queryKey: [...queryKey] })),
      );
    },
  });
  const failure = mutation.error instanceof Cancelled ? null : mutation.error;
  return { ...mutation, failure };
}
