import {
  MutationCache,
  QueryCache,
  QueryClient,
  useMutation,
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
/** How often pages look again that show what moves: by themselves, and while they are told of changes. */
const LIVE_MS = { alone: 3_000, told: 30_000 } as const;
let isStreaming = false;

/** Whether changes are told; see watch.ts. */
export function setStreaming(is: boolean): void {
  isStreaming = is;
}

/** A 401 of anything means that the session is over: the shell sees it, and asks the person to sign in again. */
function noteFailure(error: unknown): void {
  if (error instanceof ApiFailure && error.status === 401 && queryClient.getQueryData(ME)) setMe(null);
}

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    queries: {
      // What was refused is refused again; what did not come may come.
      retry: (count, error) =>
        count < TRIES_MAX && error instanceof ApiFailure && (error.status === 0 || error.status >= 500),
      staleTime: 1_000,
    },
    // Without a connection it fails at once: nothing is done later that somebody has wanted earlier.
    mutations: { networkMode: "always" },
  },
});

export const openQueries = (): QueryClient => queryClient;

/** A session that is over leaves the drafts: the same operator may go on with them after the next sign-in. */
function noteMe(me: Me | null): void {
  keepCsrfToken(me?.csrf_token ?? null);
  if (me) drafts.ownBy(me.id);
}

/** Who is signed in, from now on. Whatever the one before has seen is forgotten. */
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
  // What one operator has prepared is not sent as another.
  if (before && before.id !== me.id)
    throw new ApiFailure(
      409,
      `You are now signed in as ${me.email}, in another tab. Nothing was changed. Reload the page to continue.`,
    );
  setMe(me);
});

/** Null: nobody. */
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

/** Within the shell somebody is signed in. */
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

/** A key of what an operation reads: its path, then what was asked. `["/runs"]` names all lists of runs. */
export const keyOf = <O extends OperatorOperation>(
  from: Endpoint<O>,
  input?: InputOf<O>,
): readonly unknown[] => (input === undefined ? [from.path] : [from.path, input]);

/** Reads, and goes on reading while `live`. */
export function useRead<O extends OperatorOperation>(
  from: Endpoint<O>,
  input: InputOf<O>,
  options: { readonly live?: boolean; readonly enabled?: boolean } = {},
): UseQueryResult<OperatorAnswer<O>> {
  return useQuery<OperatorAnswer<O>>({
    queryKey: keyOf(from, input),
    queryFn: async ({ signal }) => await call(from, input, signal),
    enabled: options.enabled ?? true,
    refetchInterval: () => {
      if (options.live !== true) return false;
      return isStreaming ? LIVE_MS.told : LIVE_MS.alone;
    },
  });
}

/** Does something; then what it changes is read again. A person who gave no code is told nothing. */
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
    // What was sent may be a password or a secret: it is forgotten with the form.
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
