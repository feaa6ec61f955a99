"""What the noise of a machine leaves of a figure: its mean over several passes, and the interval that holds the true one 19 times
in 20. Figures are compared by their ratios, so it is the mean of their logarithms that is taken, and Student's distribution."""

import math
import statistics

# Its two-sided quantile for 95 %, by degrees of freedom (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
_STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179,
            15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000}


def _quantile(freedom):
    return _STUDENT[max(known for known in _STUDENT if known <= freedom)]


def mean_and_interval(values):
    """The geometric mean of positive values and its interval, as least and greatest; of one value that is the value alone."""
    if min(values) <= 0:
        return statistics.mean(values), (min(values), max(values))
    logarithms = [math.log(value) for value in values]
    middle = statistics.mean(logarithms)
    if len(values) < 2:
        return math.exp(middle), (math.exp(middle), math.exp(middle))
    reach = _quantile(len(values) - 1) * statistics.stdev(logarithms) / math.sqrt(len(values))
    return math.exp(middle), (math.exp(middle - reach), math.exp(middle + reach))
