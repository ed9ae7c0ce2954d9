// Ticks as they come. Says what a reader must know about how fresh the page is: live, or stale since when.

import { eventsAddress } from "/assets/api.js";
import { byId, say, tell } from "/assets/dom.js";
import { clock, day, duration, time } from "/assets/format.js";
import { onSetting } from "/assets/settings.js";

const listeners = new Set();
const firstRetry = 1000, lastRetry = 30000, lookEvery = 5000;
// A controller that is connected and yet decides nothing is stale, too.
const ticksMissed = 4, leastSilence = 60000;
let wasHeard = false, told = null, stream = null, retry = firstRetry, timer = 0, lastTick = null, lostAt = null, kind = "controller", heardAt = Date.now(), interval = 15000;

/* A file that nobody adds to. What writes it may have another clock: ticks that come count, whatever their time. */
function isRecorded() {
	const most = Math.max(leastSilence, ticksMissed * interval);

	if (kind !== "file" || !lastTick || (wasHeard && Date.now() - heardAt <= most))
		return false;
	return wasHeard || Math.abs(Date.now() - Date.parse(lastTick)) > most;
}

function endWords() {
	const age = (Date.now() - Date.parse(lastTick)) / 1000, size = age < 3600 ? 60 : age < 86400 ? 3600 : 86400;
	const at = age >= 0 && day(lastTick) === day(Date.now() / 1000) && age < 86400 ? clock(lastTick).slice(0, 5) : time(lastTick, { seconds: false, year: age < 0 || age > 300 * 86400 });

	return age < 0 ? at : `${at}, ${duration(Math.floor(age / size) * size)} ago`;
}

function show() {
	const line = byId("live");
	const isLost = lostAt !== null, isSilent = kind === "controller" && Date.now() - heardAt > Math.max(leastSilence, ticksMissed * interval);

	const isOpen = stream && stream.readyState === EventSource.OPEN;

	line.dataset.state = isLost || isSilent ? "stale" : !isOpen ? "starting" : isRecorded() ? "recorded" : "live";
	if (isLost)
		say(byId("live-text"), `stale since ${clock(lostAt)}`);
	else if (isSilent)
		say(byId("live-text"), `no decision since ${clock(new Date(heardAt))}`);
	else if (line.dataset.state === "recorded")
		say(byId("live-text"), `recorded, ended ${endWords()}`);
	else if (line.dataset.state === "live")
		say(byId("live-text"), "live");
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
			wasHeard = wasHeard || (told !== null && told !== lastTick); // the first one is the newest there was
			if (kind !== "file" || told !== lastTick)
				heardAt = Date.now();
			told = lastTick;
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
