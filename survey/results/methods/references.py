"""The works that methods are taken from, by the short form in which docstrings cite them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

REFERENCES: Mapping[str, str] = MappingProxyType(
    {
        "Agrawal and Aggarwal 2001": "Agrawal, D., Aggarwal, C. C. (2001). On the design and "
        "quantification of privacy preserving data mining algorithms. PODS, 247–255.",
        "Blair, Imai and Zhou 2015": "Blair, G., Imai, K., Zhou, Y.-Y. (2015). Design and "
        "analysis of the randomized response technique. Journal of the American Statistical "
        "Association 110, 1304–1319.",
        "Boruch 1971": "Boruch, R. F. (1971). Assuring confidentiality of responses in social "
        "research: a note on strategies. The American Sociologist 6, 308–311.",
        "Cao, Jia, Gong 2021": "Cao, X., Jia, J., Gong, N. Z. (2021). Data poisoning attacks to "
        "local differential privacy protocols. USENIX Security.",
        "Cheu, Smith, Ullman 2021": "Cheu, A., Smith, A., Ullman, J. (2021). Manipulation attacks "
        "in local differential privacy. IEEE Symposium on Security and Privacy.",
        "Clopper and Pearson 1934": "Clopper, C. J., Pearson, E. S. (1934). The use of confidence "
        "or fiducial limits illustrated in the case of the binomial. Biometrika 26, 404–413.",
        "Cochran 1954": "Cochran, W. G. (1954). Some methods for strengthening the common χ² "
        "tests. Biometrics 10, 417–451.",
        "Cochran 1977": "Cochran, W. G. (1977). Sampling Techniques, 3rd edition. Wiley.",
        "Duchi, Jordan, Wainwright 2018": "Duchi, J. C., Jordan, M. I., Wainwright, M. J. (2018). "
        "Minimax optimal procedures for locally private estimation. Journal of the American "
        "Statistical Association 113, 182–201.",
        "Dwork and Roth 2014": "Dwork, C., Roth, A. (2014). The algorithmic foundations of "
        "differential privacy. Foundations and Trends in Theoretical Computer Science 9, 211–407.",
        "Dwork, McSherry, Nissim, Smith 2006": "Dwork, C., McSherry, F., Nissim, K., Smith, A. "
        "(2006). Calibrating noise to sensitivity in private data analysis. TCC, 265–284.",
        "Feldman and Cousins 1998": "Feldman, G. J., Cousins, R. D. (1998). Unified approach to "
        "the classical statistical analysis of small signals. Physical Review D 57, 3873–3889. "
        "doi:10.1103/PhysRevD.57.3873",
        "Fieller 1954": "Fieller, E. C. (1954). Some problems in interval estimation. Journal of "
        "the Royal Statistical Society B 16, 175–185.",
        "Fisher 1922": "Fisher, R. A. (1922). On the interpretation of χ² from contingency "
        "tables, and the calculation of P. Journal of the Royal Statistical Society 85, 87–94.",
        "Fleiss 1981": "Fleiss, J. L. (1981). Statistical Methods for Rates and Proportions, 2nd "
        "edition. Wiley.",
        "Fox and Tracy 1986": "Fox, J. A., Tracy, P. E. (1986). Randomized Response: A Method for "
        "Sensitive Surveys. Sage.",
        "Ghosh, Roughgarden, Sundararajan 2012": "Ghosh, A., Roughgarden, T., Sundararajan, M. "
        "(2012). Universally utility-maximizing privacy mechanisms. SIAM Journal on Computing 41, "
        "1673–1693.",
        "Greenberg, Abul-Ela, Simmons, Horvitz 1969": "Greenberg, B. G., Abul-Ela, A.-L. A., "
        "Simmons, W. R., Horvitz, D. G. (1969). The unrelated question randomized response model: "
        "theoretical framework. Journal of the American Statistical Association 64, 520–539.",
        "Hall 1992": "Hall, P. (1992). The Bootstrap and Edgeworth Expansion. Springer.",
        "Heck and Moshagen 2018": "Heck, D. W., Moshagen, M. (2018). RRreg: an R package for "
        "correlation and regression analyses of randomized response data. Journal of Statistical "
        "Software 85(2), 1–29.",
        "Huber 1967": "Huber, P. J. (1967). The behavior of maximum likelihood estimates under "
        "nonstandard conditions. Fifth Berkeley Symposium 1, 221–233.",
        "Johnson 1978": "Johnson, N. J. (1978). Modified t tests and confidence intervals for "
        "asymmetrical populations. Journal of the American Statistical Association 73, 536–544.",
        "Kairouz, Oh, Viswanath 2016": "Kairouz, P., Oh, S., Viswanath, P. (2016). Extremal "
        "mechanisms for local differential privacy. Journal of Machine Learning Research 17(17), "
        "1–51.",
        "Kish 1965": "Kish, L. (1965). Survey Sampling. Wiley.",
        "Li et al. 2020": "Li, Z., Wang, T., Lopuhaä-Zwakenberg, M., Li, N., Škorić, B. (2020). "
        "Estimating numerical distributions under local differential privacy. SIGMOD, 621–635.",
        "McSherry and Talwar 2007": "McSherry, F., Talwar, K. (2007). Mechanism design via "
        "differential privacy. FOCS, 94–103.",
        "Mee 1984": "Mee, R. W. (1984). Confidence bounds for the difference between two "
        "probabilities. Biometrics 40, 1175–1176.",
        "Miettinen and Nurminen 1985": "Miettinen, O., Nurminen, M. (1985). Comparative analysis "
        "of two rates. Statistics in Medicine 4, 213–226.",
        "Newcombe 1998": "Newcombe, R. G. (1998). Interval estimation for the difference between "
        "independent proportions: comparison of eleven methods. Statistics in Medicine 17, "
        "873–890.",
        "Nguyen et al. 2016": "Nguyên, T. T., Xiao, X., Yang, Y., Hui, S. C., Shin, H., Shin, J. "
        "(2016). Collecting and analyzing data from smart device users with local differential "
        "privacy. arXiv:1606.05053.",
        "Pearson 1900": "Pearson, K. (1900). On the criterion that a given system of deviations "
        "from the probable in the case of a correlated system of variables is such that it can be "
        "reasonably supposed to have arisen from random sampling. Philosophical Magazine 50, "
        "157–175.",
        "Scheers and Dayton 1988": "Scheers, N. J., Dayton, C. M. (1988). Covariate randomized "
        "response models. Journal of the American Statistical Association 83, 969–974.",
        "Thompson 1936": "Thompson, W. R. (1936). On confidence ranges for the median and other "
        "expectation distributions for populations of unknown distribution form. Annals of "
        "Mathematical Statistics 7, 122–128.",
        "van den Hout and van der Heijden 2002": "van den Hout, A., van der Heijden, P. G. M. "
        "(2002). Randomized response, statistical disclosure control and misclassification: a "
        "review. International Statistical Review 70, 269–288.",
        "van den Hout, van der Heijden and Gilchrist 2007": "van den Hout, A., van der Heijden, "
        "P. G. M., Gilchrist, R. (2007). The logistic regression model with response variables "
        "subject to randomized response. Computational Statistics and Data Analysis 51, 6060–6069.",
        "Wang et al. 2019": "Wang, N., Xiao, X., Yang, Y., Zhao, J., Hui, S. C., Shin, H., Shin, "
        "J., Yu, G. (2019). Collecting and analyzing multidimensional data with local "
        "differential privacy. ICDE, 638–649.",
        "Warner 1965": "Warner, S. L. (1965). Randomized response: a survey technique for "
        "eliminating evasive answer bias. Journal of the American Statistical Association 60, "
        "63–69.",
        "Wilks 1938": "Wilks, S. S. (1938). The large-sample distribution of the likelihood ratio "
        "for testing composite hypotheses. Annals of Mathematical Statistics 9, 60–62.",
        "Wilson 1927": "Wilson, E. B. (1927). Probable inference, the law of succession, and "
        "statistical inference. Journal of the American Statistical Association 22, 209–212.",
        "Ye and Barg 2018": "Ye, M., Barg, A. (2018). Optimal schemes for discrete distribution "
        "estimation under locally differential privacy. IEEE Transactions on Information Theory "
        "64, 5662–5676.",
        "Zou and Donner 2008": "Zou, G. Y., Donner, A. (2008). Construction of confidence limits "
        "about effect measures: a general approach. Statistics in Medicine 27, 1693–1702.",
    }
)
"""Short form to full reference; a test holds each citation against the code that it explains."""
