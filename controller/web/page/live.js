// Ticks as they come. Says what a reader must know about how fresh the page is: live, or stale since when.

import { eventsAddress } from "/assets/api.js";
import { byId, say, tell } from "/assets/dom.js";
import { clock, time } from "/assets/format.js";
import { onSetting } from "/assets/settings.js";

const listeners = new Set();
const firstRetry = 1000, lastRetry = 30000, lookEvery = 5000;
// A controller that is connected and yet decides nothing is stale, too.
const ticksMissed = 4, leastSilence = 60000;
let stream = null, retry = firstRetry, timer = 0, lastTick = null, lostAt = null, kind = "controller", heardAt = Date.now(), interval = 15000;

function show() {
	const line = byId("live");
	const isLost = lostAt !== null, isSilent = kind === "controller" && Date.now() - heardAt > Math.max(leastSilence, ticksMissed * interval);

	const isOld = kind === "file" && lastTick && Date.now() - new Date(lastTick) > Math.max(leastSilence, ticksMissed * interval);

	line.dataset.state = isLost || isSilent ? "stale" : stream && stream.readyState === EventSource.OPEN ? "live" : "starting";
	if (isLost)
		say(byId("live-text"), `stale since ${clock(lostAt)}`);
	else if (isSilent)
		say(byId("live-text"), `no decision since ${clock(new Date(heardAt))}`);
	else if (line.dataset.state === "live")
		say(byId("live-text"), isOld ? "recorded" : "live");
	else
		say(byId("live-text"), "connecting");
	say(byId("live-more"), line.dataset.state === "live" && lastTick ? `tick of ${kind === "file" ? time(lastTick) : clock(lastTick)}` : "");
}

function lost() {
	if (lostAt === null) {
		lostAt = new Date();
		tell("The connection is lost. What is shown is no longer up to date.");
	}
	show();
	// A browser tries again by itself unless the server refused; then it is on us.
	if (stream.readyState === EventSource.CLOSED) {
		clearTimeout(timer);
		timer = setTimeout(open, retry);
		retry = Math.min(retry * 2, lastRetry);
	}
}

function found() {
	retry = firstRetry;
	if (lostAt !== null) {
		lostAt = null;
		tell("Connected again.");
		listeners.forEach(l => l());
	}
	show();
}

function open() {
	if (stream)
		stream.close();
	stream = new EventSource(eventsAddress);
	stream.addEventListener("open", found);
	stream.addEventListener("error", lost);
	stream.addEventListener("tick", event => {
		try {
			lastTick = JSON.parse(event.data).at;
			heardAt = Date.now();
		} catch {
			return;
		}
		show();
		listeners.forEach(l => l());
	});
}

/** Called after new ticks, and once the connection is back. */
export function onTick(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

/** `source` and `history` as the API tells them. */
export function follow(source, history) {
	kind = source.kind;
	lastTick = history ? history.to : null;
	interval = history ? 1000 * history.intervalSeconds : interval;
	onSetting(show);
	setInterval(show, lookEvery);
	open();
	show();
}
