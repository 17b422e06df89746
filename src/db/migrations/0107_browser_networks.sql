-- compatible back to 0088
-- Whether each of the worker's browsers has a network of its own, as LATCHKEY_BROWSER_NETWORK says; null: the worker has not said.
alter table worker add column own_browser_networks boolean;
