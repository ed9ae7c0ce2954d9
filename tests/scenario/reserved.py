#!/usr/bin/env python3
"""A Capacity Block of EKS comes to its end: what serves there is replaced in another node group before its buyer's schedule empties
it and EC2 ends what is left. When it ends stands in EC2 alone."""
import re
import time

import account
import stage

ENDS = 75 * 60  # simulated seconds, from the start
SIZE = re.compile(r'\b(?:DesiredCapacity|RequestedCapacity|MinSize)=(\d+)|"(?:desired|min)Size":\s*(\d+)')


class Block(account.Eks):
    spot, spot_group = 'g5-block', 'g5-block'
    edits = (('    - name: g5-spot\n', '    - name: g5-block\n'), ('nodegroup: g5-spot', 'nodegroup: g5-block'),
             ('capacityType: spot', 'capacityType: reserved'), ('      max: 20\n', '      max: 4\n'), ('      max: 10\n', '      max: 5\n'))

    def tenancy(self):
        zones = ['eu-west-1a']
        return {'aws': {}, 'groups': [
            self.group('g5-block', max=4, zones=zones, eks={'capacity_type': 'CAPACITY_BLOCK', 'reserved_for': f'{ENDS}s'}),
            self.group('g5-od', max=5, zones=zones, initial=1, eks={'retry': '30s'})]}

    def limits(self):
        return {'g5-block': {'min': 0, 'max': 4, 'standby': 0}, 'g5-od': {'min': 1, 'max': 5, 'standby': 4}}

    def growths(self, since=0.0):
        """Calls that ask for machines in the block: answered or not, launched or not."""
        return [x for x in self.exchanges(since) if 'g5-block' in x['url'] + x['body']
                and any(int(query or json) for query, json in SIZE.findall(x['body']))]


def reserved(s):
    cloud = Block(s)
    cloud.open()
    s.accounts('preheat-a')
    controller = s.controller('preheat-a', '-f', cloud.manifest(), '--no-election', '--namespace', stage.SPACE)
    controller.environment.update(cloud.environment())
    controller.start()
    s.expect('a replica serves on the on-demand machine that was there', lambda: len(s.pods(account.APP)) >= 1)
    cloud.traffic(2.0, ENDS)
    s.expect('what is reserved is used first', lambda: len(s.running('g5-block')) >= 1)
    s.expect('an event tells when it ends', lambda: s.told('ReservationEnds', 'g5-block'), ENDS)
    s.mark('it says: ' + (s.told('ReservationEnds', 'g5-block') or [{'note': ''}])[0]['note'])
    s.expect('replacements serve, and it is empty', lambda: not s.group('g5-block')['machines'] and
             len(s.running('g5-od')) >= 2 and len(s.pods(account.APP)) >= 2, ENDS)
    emptied, log, at = time.time(), s.machines.calls(), s.machines.score()['simulated_s']
    s.check(f'at {at / 60:.0f} min, before the schedule at {ENDS / 60 - 40:.0f} min', at < ENDS - 40 * 60 and not log['acts'])
    s.check('what was used there was asked for', cloud.growths())
    s.expect('its schedule acts', lambda: s.machines.calls()['acts'], ENDS)
    cloud.more(6, ENDS)
    s.expect('on demand is at its limit, and more is needed', lambda: len(s.running('g5-od')) == 5, ENDS)
    s.expect('its end passes', lambda: s.machines.score()['simulated_s'] > ENDS - 28 * 60, ENDS)
    acts = [(act['group'], act['kind'], act['size']) for act in s.machines.calls()['acts']]
    s.check(f'it acted once: {acts}', acts == [('g5-block', 'scheduled-action', 0)])
    s.check('nothing was asked for there again', not cloud.growths(emptied))
    s.check('and nothing was launched', s.machines.calls()['by_group']['g5-block'] == log['by_group']['g5-block'])
    s.check('no request was cut off', s.machines.score()['pools']['chat']['interrupted'] == 0)
    s.check('it ends by itself on SIGTERM with 0', controller.stop(30) == 0)
    s.replay(controller)
    s.judge(account.LAWS)


if __name__ == '__main__':
    stage.main(reserved, 'reserved')
