/** For the compiler alone: what `src` exports is what `types` declares. */

import * as index from "../src/index.js";
import * as player from "../src/player.js";
import * as protocol from "../src/protocol.js";
import type * as declaredIndex from "../types/index.js";
import type * as declaredPlayer from "../types/player.js";
import type * as declaredProtocol from "../types/protocol.js";

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never;
const everyName: Same<keyof typeof index, keyof typeof declaredIndex> = true;

// Constructors that are ours alone are private where they are declared; all else must fit.
type Made = "RealtimeTTS" | "Turn";
const rest: Omit<typeof declaredIndex, Made> = index;
const connect: (typeof declaredIndex.RealtimeTTS)["connect"] = index.RealtimeTTS.connect;
const session = (made: index.RealtimeTTS): declaredIndex.RealtimeTTS => made;
const turn = (made: index.Turn): declaredIndex.Turn => made;
const wholePlayer: Same<keyof typeof player, keyof typeof declaredPlayer> = true;
const newPlayer = (made: player.Player): declaredPlayer.Player => made;
const wire: Omit<typeof declaredProtocol, never> = protocol;
// What may be missing may be undefined.
const nothing: undefined = undefined;
const options: declaredIndex.TurnOptions & declaredIndex.SendOptions & declaredIndex.Played = {
  turnId: nothing,
  end: nothing,
  playedMs: nothing,
  playedSamples: nothing,
};

export { connect, everyName, newPlayer, options, rest, session, turn, wholePlayer, wire };
